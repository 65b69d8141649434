#!/bin/sh
# Builds the program, unless `make` built it already, and sweeps real training steps on this machine. Preset demo has
# the cpu backend only, and compiles each room as one file: a few minutes on two cores.
# usage: scripts/demo.sh CONFIG RANKS [OPTION...]      environment: PRESET=NAME (another preset)
set -eu
cd "$(dirname "$0")/.."
preset=demo
[ ! -x build/release/bin/harness ] || preset=release
preset=${PRESET:-$preset}
scripts/build.sh "$preset" harness_program_bin
[ -z "${PRESET:-}" ] || export HARNESS_BINARY="$PWD/build/$preset/bin/harness"  # ./harness looks for no other
. scripts/mpi_root.sh
config=$1 ranks=$2
shift 2
# shellcheck disable=SC2086
set -- mpirun $oversubscribe -np "$ranks" ./harness sweep "$config" "$@"
echo "demo: $*" >&2
code=0
"$@" || code=$?
# 4: the control moved, or a case failed; the table says which.
[ $code = 0 ] || [ $code = 4 ] || exit $code
file=$(ls -t results/*.h5 | head -n 1)
echo "demo: \`./harness report $file\` makes a page of it; README.md goes on from here" >&2
echo "demo: \`./harness sweep configs/scenarios/16node-as-found.yaml --ranks 128\` brings up a slow cluster, predicted" >&2
