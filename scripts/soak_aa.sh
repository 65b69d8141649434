#!/bin/bash
# Are the verdicts as reliable as declared, on this machine? Runs twenty sweeps in which nothing changes: the baseline,
# its copy, and six more copies under other names (an environment variable that nobody reads). smallest_effect is close
# to zero, so that no threshold hides anything. One sweep in twenty may call any of the six faster or slower. If the
# verdicts are reliable, four or more false sweeps in twenty happen once in sixty runs; this counts as a failure.
# usage: scripts/soak_aa.sh [sweeps, default 20]
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/mpi_root.sh
sweeps=${1:-20}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/aa.yaml" << 'END'
name: aa
backend: cpu
model: {layers: 1, hidden: 64, heads: 2, vocab: 256, sequence: 64}
baseline: {precision: fp32, global_batch_size: 4, micro_batch_size: 2, threads: 1}
sweep: {env: [{AA: 1}, {AA: 2}, {AA: 3}, {AA: 4}, {AA: 5}, {AA: 6}]}
measure: {rounds: 12, warmup_steps: 2, steps: 20, smallest_effect: 0.001 %}
END
false_sweeps=0 false_verdicts=0
for seed in $(seq 1 "$sweeps"); do
  # The control may also move by chance (exit code 4). It does not count; the six copies do.
  # shellcheck disable=SC2086
  mpirun $oversubscribe -np 2 ./harness sweep "$folder/aa.yaml" --seed "$seed" -o "$folder/$seed.h5" > /dev/null 2> "$folder/log" ||
    [ $? = 4 ] || { cat "$folder/log" >&2; exit 1; }
  wrong=$({ ./harness show "$folder/$seed.h5" --format csv || [ $? = 4 ]; } | awk -F, '/^"?env=/ && /,(faster|slower),/' | wc -l)
  false_verdicts=$((false_verdicts + wrong))
  [ "$wrong" = 0 ] || false_sweeps=$((false_sweeps + 1))
  echo "soak: A/A sweep $seed of $sweeps: $wrong of 6 copies were called faster or slower"
done
echo "soak: $false_sweeps of $sweeps A/A sweeps had a false verdict ($false_verdicts of $((6 * sweeps)) verdicts)"
echo "soak: 5 % of sweeps are expected"
[ $((false_sweeps * 20)) -lt $((4 * sweeps)) ] || [ "$sweeps" -lt 10 ]
