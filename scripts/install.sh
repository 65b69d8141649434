#!/bin/bash
# Builds the program of one CMake preset and installs it into PREFIX. The installed tree may be moved or copied as a whole.
# usage: scripts/install.sh PRESET PREFIX      environment: DESTDIR=FOLDER, which is put before PREFIX (for packages)
set -euo pipefail
cd "$(dirname "$0")/.."
folder=build/$1 prefix=$2
say() { echo "install: $*" >&2; }
[ -n "$prefix" ] || { say "PREFIX is empty"; exit 1; }
# shellcheck disable=SC2088  # the tilde of PREFIX=~/harness, which not every shell expands
case $prefix in "~/"*) prefix=$HOME/${prefix#*/} ;; /*) ;; *) prefix=$PWD/$prefix ;; esac
if ! mkdir -p "${DESTDIR:-}$prefix" 2> /dev/null || [ ! -w "${DESTDIR:-}$prefix" ]; then
  say "cannot write to ${DESTDIR:-}$prefix; choose a folder of yours: make install PREFIX=~/harness"
  exit 1
fi

# Under sudo, with other modules and another git: installs the existing build of the folder's owner as it is.
if [ ! -x "$folder/bin/harness" ] || [ -O "$folder" ]; then scripts/build.sh "$1" harness_program_bin; fi
rm -f "$folder/install_manifest.txt"  # another user's cannot be written
cmake --install "$folder" --prefix "$prefix" --strip
say "$prefix/bin/harness; for \`module load harness\`: module use $prefix/share/modulefiles"
