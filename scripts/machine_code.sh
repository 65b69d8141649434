#!/bin/sh
# Compiles the kernels for three generations of GPUs and checks their machine code (check_machine_code.py).
set -eu
cd "$(dirname "$0")/.."
scripts/build.sh machine-code harness_kernels
find build/machine-code -name '*.cu.o' -exec scripts/check_machine_code.py {} +
