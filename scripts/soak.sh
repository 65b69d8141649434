#!/bin/sh
# Runs the tests that take too long for every change, hours in all. PARTS="aa ranks" selects some of: tests (all tests
# at -O2, some repeated: HARNESS_SOAK, a job killed 200 times, 3000 simulated sweeps under each of 23 noises;
# TESTS=REGEX selects some of them), aa (sweeps and grids in which nothing changes), delay (sweeps with a planted
# delay), predict (a calibration's prediction against the measurement), lint (clang-tidy with its static analyzer),
# ranks (a sweep of 128 ranks).
set -eu
cd "$(dirname "$0")/.."
. scripts/mpi_root.sh
export HARNESS_SOAK=1
started=$(date +%s)
result=$(mktemp -d)
trap 'rm -rf "$result"' EXIT

soak() {
  case $1 in
    # One at a time: some measure real delays. A test may take as long as 200 sweeps.
    tests) TEST_JOBS=1 TEST_TIMEOUT=7200 scripts/test.sh release -R "${TESTS:-.}" ;;
    aa) scripts/soak_aa.sh ;;
    delay) scripts/soak_delay.sh ;;
    predict) scripts/soak_predict.sh ;;
    lint) scripts/build.sh check --configure-only && LINT_ANALYZE=1 scripts/lint.sh ;;
    ranks)
      set -- mpirun $oversubscribe -np 128 ./harness sweep configs/tiny128.yaml -o "$result/tiny128.h5"
      echo "soak: $*" >&2
      "$@" || [ $? -eq 4 ] # the control moved by chance
      ./harness show "$result/tiny128.h5" || [ $? -eq 4 ]
      ;;
    *)
      echo "soak: found $1; the parts are tests, aa, delay, predict, lint and ranks" >&2
      return 1
      ;;
  esac
}

parts=${PARTS:-tests aa delay predict lint ranks}
for part in $parts; do
  before=$(date +%s)
  soak "$part"
  echo "soak: $part passed in $(($(date +%s) - before)) s" >&2
done
echo "soak: $parts passed in $(($(date +%s) - started)) s"
