#!/bin/bash
# What scripts/setup.sh installs and what scripts/build.sh tells CMake. Packages, programs and CMake are stand-ins.
set -u
source=$(cd "$(dirname "$0")/../../scripts" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
mkdir bin scripts
cp "$source/setup.sh" "$source/build.sh" scripts/
failures=0

stand_in() { printf '#!/bin/bash\n%s\n' "$2" > "$1"; chmod +x "$1"; }
# shellcheck disable=SC2016  # the stand-ins expand it
{
  stand_in scripts/fetch.sh 'exit 0'
  stand_in bin/dpkg-query 'for name in "${@:4}"; do grep -qx -e "$name" absent || echo "$name installed"; done'
  stand_in bin/apt-cache '! grep -qx -e "${@: -1}" unavailable'
  stand_in bin/apt-get 'echo "${@: -1}" >> calls'
  stand_in bin/id 'echo "${USER_ID:-0}"'
  for program in mpicc mpirun ninja; do stand_in bin/$program 'exit 0'; done
}
export PATH=$folder/bin:/usr/bin:/bin
unset WERROR JOBS CMAKE_FLAGS CMAKE_PREFIX_PATH

# $1: what this is; $2: the packages that are absent; $3: option; $4: exit code; $5: the last word of each command.
expect() {
  rm -f calls
  tr ' ' '\n' <<< "$2" > absent
  bash scripts/setup.sh $3 > log 2>&1
  local rc=$? seen
  seen=$(cat calls 2> /dev/null | tr '\n' ' ')
  [ "$rc $seen" = "$4 $5" ] && return
  echo "$1: expected '$4 $5', got '$rc $seen':"
  cat log
  failures=$((failures + 1))
}

: > unavailable
expect "nothing is missing" "" "" 0 ""
expect "an MPI of the site is no HDF5" "libopenmpi-dev libmpich-dev libhdf5-dev libhdf5-openmpi-dev libhdf5-mpich-dev" \
  "" 0 "update libhdf5-dev "
echo chromium > unavailable
expect "Ubuntu has no package chromium" "chromium clang-tidy" --dev 0 "update clang-tidy "
expect "a package that is needed is not there" "chromium libfmt-dev" --dev 0 "update libfmt-dev "
echo libfmt-dev > unavailable
expect "a package that is needed is not available" "libfmt-dev" "" 1 "update "

# Without root, CMake looks for the libraries: with --demo, not for those of the tests.
export USER_ID=1000
stand_in bin/cmake 'echo "$2" >> calls; mkdir -p "build/$2"'
expect "what is missing may be elsewhere" "libfmt-dev" "" 0 "release "
expect "what the demo misses may be elsewhere" "libfmt-dev" --demo 0 "demo "
for program in clang++ clang-format clang-tidy; do stand_in bin/$program 'exit 0'; done
rm -rf build
expect "the tools are there, though of no package" "libfmt-dev clang-tidy chromium" --dev 0 "release "

# An error of CMake's own, such as a version that knows no presets, is shown.
rm -rf build
stand_in bin/cmake 'echo "CMake Error: no such option --preset" >&2; exit 1'
expect "CMake is too old" "libfmt-dev" "" 1 ""
for words in "no such option --preset" "are missing: libfmt-dev"; do
  grep -q -e "$words" log || { echo "expected '$words', got: $(cat log)"; failures=$((failures + 1)); }
done

# A folder that CMake configured, or failed to, before Ninja was installed keeps its generator: CMake refuses another.
# shellcheck disable=SC2016
stand_in bin/cmake 'echo "$3" > generator; mkdir -p "build/$2"'
mkdir -p build/old && echo 'CMAKE_GENERATOR:INTERNAL=Unix Makefiles' > build/old/CMakeCache.txt
bash scripts/build.sh old --configure-only > log 2>&1
[ "$(cat generator)" = "-GUnix Makefiles" ] || { cat log generator; failures=$((failures + 1)); }
bash scripts/build.sh new --configure-only > log 2>&1
[ "$(cat generator)" = "-DHARNESS_WERROR=OFF" ] || { cat log generator; failures=$((failures + 1)); }

[ $failures = 0 ] && echo "setup.sh and build.sh: passed"
exit $((failures > 0))
