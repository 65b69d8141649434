#!/bin/sh
# Compiles the kernels for three generations of GPUs, as preset check does, and checks their machine code
# (check_machine_code.py).
set -eu
cd "$(dirname "$0")/.."
folder=build/check
scripts/build.sh check --configure-only
objects=$(ninja -C $folder -t targets all | sed -n 's/^\(.*harness_kernels\.dir.*\.cu\.o\): .*/\1/p')
# shellcheck disable=SC2086
ninja -C $folder ${JOBS:+-j "$JOBS"} $objects
for object in $objects; do echo "$folder/$object"; done | xargs scripts/check_machine_code.py
