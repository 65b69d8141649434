#!/bin/sh
# Runs what takes too long for every change: all tests at -O2, some of them more often (HARNESS_SOAK: a job killed 200
# times, 200 pairs of sweeps on one file, 3000 simulated sweeps under each of 23 noises), twenty sweeps in which nothing
# changes, one in which something does, fifty of a grid of sizes and a setting, a sweep of 128 ranks; and clang-tidy
# with its static analyzer. docs/architecture.md has the list. All of it takes hours; PARTS="aa ranks" are some
# of it: tests, aa (nothing changes), delay (something does), sizes (both, of a grid), predict (a
# calibration does, and what is then measured), lint, ranks (128 of them). TESTS=REGEX are some of the tests.
set -eu
cd "$(dirname "$0")/.."
. scripts/mpi_root.sh
export HARNESS_SOAK=1
started=$(date +%s)
result=$(mktemp -d)
trap 'rm -rf "$result"' EXIT

soak() {
  case $1 in
    # One at a time: some measure real delays. A test may take as long as 200 sweeps do.
    tests) TEST_JOBS=1 TEST_TIMEOUT=7200 scripts/test.sh release -R "${TESTS:-.}" ;;
    aa) scripts/soak_aa.sh ;;
    delay) scripts/soak_delay.sh ;;
    sizes) scripts/soak_sizes.sh ;;
    predict) scripts/soak_predict.sh ;;
    lint) scripts/build.sh check --configure-only && LINT_ANALYZE=1 scripts/lint.sh ;;
    ranks)
      set -- mpirun $oversubscribe -np 128 ./harness sweep configs/tiny128.yaml -o "$result/tiny128.h5"
      echo "soak: $*" >&2
      "$@"
      ./harness show "$result/tiny128.h5"
      ;;
    *)
      echo "soak: found $1; the parts are tests, aa, delay, sizes, predict, lint and ranks" >&2
      return 1
      ;;
  esac
}

parts=${PARTS:-tests aa delay sizes predict lint ranks}
for part in $parts; do
  before=$(date +%s)
  soak "$part"
  echo "soak: $part passed in $(($(date +%s) - before)) s" >&2
done
echo "soak: $parts passed in $(($(date +%s) - started)) s"
