#!/bin/sh
# Configures (if necessary) and builds one CMake preset, or only some targets of it.
# usage: scripts/build.sh PRESET [--configure-only | TARGET...]      environment: WERROR=1, JOBS=N, CMAKE_FLAGS=...
set -eu
cd "$(dirname "$0")/.."
preset=$1
folder=build/$preset
shift

say() { echo "harness: $*" >&2; }
if ! command -v cmake > /dev/null; then
  say "cmake (3.22 or newer) was not found; run \`make setup\` as root, or \`module load cmake\`"
  exit 1
fi
if ! command -v "${CXX:-c++}" > /dev/null && ! command -v g++ > /dev/null; then
  say "no C++20 compiler (c++, or g++ 11 or newer) was found; run \`make setup\` as root, or \`module load gcc\`, or name"
  say "it, if it is there under another name: CXX=g++-13 make"
  exit 1
fi
# A folder keeps the generator of its first configuration, even of one that failed.
generator=$(sed -n 's/^CMAKE_GENERATOR:INTERNAL=//p' "$folder/CMakeCache.txt" 2> /dev/null || true)
if [ -z "$generator" ] && ! command -v ninja > /dev/null; then
  generator="Unix Makefiles"
fi

# Configure if this never succeeded or if the options changed. CMake itself notices changed build files.
wishes="WERROR=${WERROR:-} CMAKE_FLAGS=${CMAKE_FLAGS:-} CMAKE_PREFIX_PATH=${CMAKE_PREFIX_PATH:-} CXX=${CXX:-}"
if [ "$(cat "$folder/.configured" 2> /dev/null)" != "$wishes" ]; then
  rm -f "$folder/.configured"
  werror=OFF
  [ -n "${WERROR:-}" ] && [ "${WERROR:-}" != 0 ] && werror=ON
  # shellcheck disable=SC2086
  cmake --preset "$preset" ${generator:+"-G$generator"} -DHARNESS_WERROR=$werror ${CMAKE_FLAGS:-}
  echo "$wishes" > "$folder/.configured"
fi
[ "${1:-}" = --configure-only ] && exit 0
[ $# = 0 ] || set -- --target "$@"

# One compiler per core, but at most one per gigabyte of free memory.
jobs=${JOBS:-}
if [ -z "$jobs" ]; then
  jobs=$(nproc 2> /dev/null || echo 2)
  free=$(awk '/^MemAvailable:/ {print int($2 / 1048576)}' /proc/meminfo 2> /dev/null || echo 2)
  [ "${free:-2}" -ge 1 ] || free=1
  [ "$jobs" -le "$free" ] || jobs=$free
fi
cmake --build "$folder" -j "$jobs" "$@"
