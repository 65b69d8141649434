# Writes OUTPUT, a header that defines HARNESS_GIT as the commit of SOURCE, with "-dirty" if its files differ from that.
# Runs in every build, not only when CMake configures, so that result files name the compiled source. An unchanged
# header is not rewritten.
execute_process(COMMAND git describe --always --dirty --abbrev=10 WORKING_DIRECTORY ${SOURCE}
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT commit)
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define HARNESS_GIT \"${commit}\"\n")
