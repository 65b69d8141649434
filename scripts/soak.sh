#!/bin/sh
# Runs what takes too long for every change: all tests at -O2, some of them more often (HARNESS_SOAK: a job killed 200
# times, 200 pairs of sweeps on one file, 3000 simulated sweeps under each of 23 noises), twenty sweeps in which nothing
# changes, one in which something does, a sweep of 128 ranks; and clang-tidy on each source alone, with its static
# analyzer. docs/testing.md has the list.
set -eu
cd "$(dirname "$0")/.."
. scripts/mpi_root.sh
export HARNESS_SOAK=1
started=$(date +%s)
# One at a time: some measure real delays. A test may take as long as 200 sweeps do.
TEST_JOBS=1 TEST_TIMEOUT=7200 scripts/test.sh release
result=$(mktemp -d)
trap 'rm -rf "$result"' EXIT
scripts/soak_aa.sh
scripts/soak_delay.sh
LINT_ANALYZE=1 scripts/lint.sh
set -- mpirun $oversubscribe -np 128 ./harness sweep configs/tiny128.yaml -o "$result/tiny128.h5"
echo "soak: $*" >&2
"$@"
./harness show "$result/tiny128.h5"
echo "soak: passed in $(($(date +%s) - started)) s"
