#!/bin/sh
# Sweeps real training steps on this machine. usage: scripts/demo.sh CONFIG RANKS
set -eu
cd "$(dirname "$0")/.."
. scripts/mpi_root.sh
set -- mpirun $oversubscribe -np "$2" ./harness sweep "$1"
echo "demo: $*" >&2
exec "$@"
