#!/bin/sh
# Runs the tests that take too long for `make test`: tests that repeat more often with HARNESS_SOAK (a job killed 200
# times, 200 pairs of sweeps on one file, 3000 simulated sweeps under each of 23 noises), twenty sweeps in which nothing
# changes, one in which something does, a sweep of 128 ranks; and clang-tidy's static analyzer.
set -eu
cd "$(dirname "$0")/.."
. scripts/mpi_root.sh
export HARNESS_SOAK=1
started=$(date +%s)
ran=0
for program in build/release/tests/test_launch build/release/tests/test_analysis build/release/tests/test_e2e; do
  [ -x "$program" ] || continue
  "$program" --gtest_brief=1
  ran=1
done
[ $ran = 1 ] || { echo "soak: no tests are built in build/release/tests; run \`make test\`" >&2; exit 1; }
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
