#!/bin/sh
# Compiles each C++ source of the product alone, without optimisation, and links nothing: what a build by rooms, one file
# each, hides is a source that lives on another's includes. All that has a cache (ccache) is quick the second time.
set -eu
cd "$(dirname "$0")/.."
scripts/build.sh alone --configure-only
objects=$(ninja -C build/alone -t targets all | sed -n 's/^\(.*\.cpp\.o\): .*/\1/p')
# shellcheck disable=SC2086
scripts/build.sh alone $objects
