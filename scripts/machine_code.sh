#!/bin/sh
# Compiles the kernels, and nothing else, for three generations of GPUs and checks their machine code
# (check_machine_code.py).
set -eu
cd "$(dirname "$0")/.."
folder=build/machine-code
scripts/build.sh machine-code --configure-only
objects=$(ninja -C $folder -t targets all | sed -n 's/^\(.*harness_kernels\.dir.*\.cu\.o\): .*/\1/p')
# shellcheck disable=SC2086
ninja -C $folder ${JOBS:+-j "$JOBS"} $objects
for object in $objects; do echo "$folder/$object"; done | xargs scripts/check_machine_code.py
