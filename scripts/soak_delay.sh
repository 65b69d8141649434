#!/bin/bash
# Is a delay of 3 % detected, in the right case? Sweeps in which every step of one case is delayed by 3 % of the step
# time, measured just before: a copy of the baseline, and a grid's setting at one of its sizes. This case must be called
# slower, by about 3 %, in nine of ten sweeps, and no other by as much. Every step also waits for 0.1 s, as a host waits
# for its GPU: so the times are steadier on a restless machine. Without the wait, the same delay takes hundreds of
# rounds; a wait of 0 delays by a core that is kept busy (tests/worker/planted/test_fault.h).
# usage: scripts/soak_delay.sh [percent, default 3] [training sweeps, default 1] [grids, default 10] [wait in s, default 0.1]
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/soak_sweep.sh
export HARNESS_BINARY=$PWD/build/release/with_hooks/harness  # takes HARNESS_TEST_FAULT
percent=${1:-3} wait_s=${4:-0.1}
echo 'measure: {until: settled, rounds: 120, warmup_steps: 1, steps: 5}' >> "$folder/training.yaml"
echo 'measure: {rounds: 12, warmup_steps: 1, steps: 5, smallest_effect: 0.5 %}' >> "$folder/grid.yaml"
kind=spin waiting=""
if awk -v w="$wait_s" 'BEGIN { exit !(w > 0) }'; then kind=delay waiting="kind=delay,step=every,seconds=$wait_s"; fi
failed=0
soak() { # configuration, ranks, sweeps, case to delay, case beside it
  local seed delay_s rows found=0 blamed=0
  for seed in $(seq 1 "$3"); do
    HARNESS_TEST_FAULT=$waiting on_ranks "$2" sweep "$folder/$1.yaml" --seed "$seed" --rounds 5 -o "$folder/before$seed.h5" --force
    delay_s=$(columns "$folder/before$seed.h5" case step_seconds |
      awk -F'|' -v p="$percent" '$1 == "baseline" { printf "%.6f", $2 * p / 100 }')
    HARNESS_TEST_FAULT="${waiting:+$waiting;}case=$4,kind=$kind,step=every,seconds=$delay_s" \
      on_ranks "$2" sweep "$folder/$1.yaml" --seed "$seed" -o "$folder/delay$seed.h5" --force
    rows=$(columns "$folder/delay$seed.h5" case verdict effect_ratio)
    awk -F'|' -v late="$4" -v p="$percent" 'index($1, late) == 1 && $2 == "slower" && $3 > 1 + p / 250 && $3 < 1 + p / 40 { found = 1 }
      END { exit !found }' <<< "$rows" && found=$((found + 1))
    awk -F'|' -v late="$4" -v other="$5" 'index($1, late) == 1 { planted = $3 } index($1, other) == 1 { verdict = $2; ratio = $3 }
      END { exit !(verdict == "slower" && ratio >= planted) }' <<< "$rows" && blamed=$((blamed + 1))
    echo "soak: a delay of $percent % ($delay_s s), $1 sweep $seed of $3: $(grep ^env= <<< "$rows" | tr '\n' ' ')"
  done
  echo "soak: the delay was found in $found of $3 $1 sweeps; its neighbour was blamed in $blamed"
  [ $((found * 10)) -ge $((9 * $3)) ] && [ "$blamed" = 0 ] || failed=1
}
soak training 1 "${2:-1}" 'env={AA: 2}' 'env={AA: 1}'
soak grid 2 "${3:-10}" 'env={AA: 1} at message_size=65540 B' 'env={AA: 1} at message_size=65528 B'
exit $failed
