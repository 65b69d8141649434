#!/bin/sh
# Runs every Google Benchmark program. usage: scripts/bench.sh [options for each, e.g. --benchmark_filter=...]
set -eu
cd "$(dirname "$0")/.."
. scripts/mpi_root.sh
ran=0
for program in build/release/bench/bench_*; do
  if [ -d "$program" ] || [ ! -x "$program" ]; then continue; fi
  echo "== ${program##*/}"
  "$program" "$@"
  ran=1
done
[ $ran = 1 ] || { echo "bench: nothing is built: is libbenchmark-dev installed? (\`make setup\`)" >&2; exit 1; }
echo "The step against PyTorch, side by side: PYTHON=... bench/compare_pytorch.sh (bench/README.md)"
