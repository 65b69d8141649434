#!/bin/sh
# Has clang read each C++ source of the product alone, and writes nothing: what a build by rooms, one file each, hides
# is a source that lives on another's includes. Half the time of a compilation, and a second compiler's opinion.
set -eu
cd "$(dirname "$0")/.."
scripts/build.sh alone --configure-only
objects=$(ninja -C build/alone -t targets all | sed -n 's/^\(.*\.cpp\.o\): .*/\1/p')
# shellcheck disable=SC2086
scripts/build.sh alone $objects
