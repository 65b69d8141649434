# The tree that `cmake --install` copies. The program finds all parts relative to its own location, so the whole tree
# can be moved. src/config/files.h and src/selftest/checks.h define where the program looks.
install(TARGETS harness_program_bin RUNTIME DESTINATION bin)
if(TARGET harness_cuda_module)
  install(TARGETS harness_cuda_module LIBRARY DESTINATION bin)  # load_backend() looks beside the program
endif()
install(PROGRAMS scripts/cuda_libraries.sh scripts/deploy/slurm.sbatch
        DESTINATION share/harness/scripts)
install(DIRECTORY configs DESTINATION share/harness)
install(DIRECTORY tests/reference DESTINATION share/harness FILES_MATCHING PATTERN *.json PATTERN *.f32)
install(FILES scripts/deploy/modulefile DESTINATION share/modulefiles/harness RENAME ${PROJECT_VERSION})
install(FILES README.md CHANGELOG.md LICENSE DESTINATION share/doc/harness)
install(DIRECTORY docs DESTINATION share/doc/harness)
