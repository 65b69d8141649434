#!/bin/bash
# Are the verdicts as reliable as declared, on this machine? Runs sweeps in which nothing changes: training steps, the
# baseline beside six copies under other names (an environment variable that nobody reads), and a grid, a collective of
# five sizes with such a variable. smallest_effect is close to zero, so that no threshold hides anything. One sweep in
# twenty may call any copy faster or slower. If the verdicts are reliable, four or more false sweeps of twenty happen
# once in sixty runs, and six or more of forty once in seventy: these count as a failure.
# usage: scripts/soak_aa.sh [training sweeps, default 20] [grids, default 40]
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/soak_sweep.sh
echo 'measure: {rounds: 12, warmup_steps: 2, steps: 20, smallest_effect: 0.001 %}' >> "$folder/training.yaml"
echo 'measure: {rounds: 8, warmup_steps: 2, steps: 20, smallest_effect: 0.05 %}' >> "$folder/grid.yaml"
failed=0
soak() { # configuration, sweeps, false ones that are too many
  local seed wrong false_sweeps=0
  for seed in $(seq 1 "$2"); do
    on_ranks 2 sweep "$folder/$1.yaml" --seed "$seed" -o "$folder/$1$seed.h5"
    wrong=$(columns "$folder/$1$seed.h5" case verdict | grep -cE '^env=.*\|(faster|slower)$' || true)
    [ "$wrong" = 0 ] || false_sweeps=$((false_sweeps + 1))
    echo "soak: nothing changes, $1 sweep $seed of $2: $wrong copies were called faster or slower"
  done
  echo "soak: $false_sweeps of $2 $1 sweeps had a false verdict; 5 % are expected"
  [ "$false_sweeps" -lt "$3" ] || [ "$2" -lt 10 ] || failed=1
}
soak training "${1:-20}" $((4 * ${1:-20} / 20))
soak grid "${2:-40}" $((6 * ${2:-40} / 40))
exit $failed
