#!/bin/sh
# Runs the tests of one preset. usage: scripts/test.sh PRESET [ctest options...]
# environment: TEST_JOBS=N at once (default: two per core, since a test that starts processes waits two thirds of the
# time), TEST_TIMEOUT=SECONDS for each (default: 1200)
set -eu
cd "$(dirname "$0")/.."
preset=$1
unset COLUMNS  # tests compare what fits a terminal of no given width
shift
. scripts/mpi_root.sh
# A result file is flushed after each block. On a disk that blocks, a test takes up to five times as long. (Docker's
# /dev/shm runs no programs, and tests write some.)
if [ -z "${TMPDIR:-}" ] && [ -w /dev/shm ] && ! grep -q '^[^ ]* /dev/shm [^ ]* [^ ]*noexec' /proc/mounts &&
  [ "$(df -Pk /dev/shm | awk 'NR == 2 {print $4}')" -ge 4000000 ]; then
  export TMPDIR=/dev/shm
fi
exec ctest --preset "$preset" -j "${TEST_JOBS:-$((2 * $(nproc 2> /dev/null || echo 1)))}" \
  --no-tests=error --timeout "${TEST_TIMEOUT:-1200}" "$@"
