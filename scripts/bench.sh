#!/bin/sh
# Runs every Google Benchmark program. usage: scripts/bench.sh [options for each, such as --benchmark_filter=...]
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
if [ $ran = 0 ]; then
  echo "bench: no benchmark is built; install libbenchmark-dev (\`make setup\` does) and run \`make bench\`" >&2
  exit 1
fi
echo "To compare the step with PyTorch: PYTHON=... bench/compare_pytorch.sh (see bench/README.md)"
