#!/bin/bash
# Is a delay of 3 % detected, in the right case? Sweeps two copies of the baseline on one rank. In one of them, every
# step is delayed by 3 % of the step time, measured just before. This case must be called slower, by about 3 %; the
# other must not be called slower by as much. Every step also waits for 0.1 s, as a host waits for its GPU: so the
# times are steadier on a restless machine. Without the wait, the same delay takes many more rounds.
# usage: scripts/soak_delay.sh [percent, default 3] [most rounds, default 120] [seconds of waiting, default 0.1]
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/mpi_root.sh
export HARNESS_BINARY=$PWD/build/release/with_hooks/harness  # takes HARNESS_TEST_FAULT
percent=${1:-3} rounds=${2:-120} wait_s=${3:-0.1}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/delay.yaml" << 'YAML'
name: delay
backend: cpu
model: {layers: 2, hidden: 128, heads: 2, vocab: 512, sequence: 128}
baseline: {precision: fp32, global_batch_size: 2, micro_batch_size: 2, threads: 1}
sweep: {env: [{AA: 1}, {AA: 2}]}
measure: {until: settled, warmup_steps: 1, steps: 5}
YAML
sweep() { # output, options…
  local output=$1 code=0
  shift
  # shellcheck disable=SC2086
  mpirun $oversubscribe -np 1 ./harness sweep "$folder/delay.yaml" "$@" -o "$output" > /dev/null 2> "$folder/log" || code=$?
  [ $code = 0 ] || [ $code = 4 ] || { cat "$folder/log" >&2; exit 1; } # 4: the control moved, possibly by chance
}
# The cell of the CSV in the row of this case and the column of this name.
cell() { # file, case, column
  { ./harness show "$1" --format csv || [ $? = 4 ]; } | awk -F, -v name="$2" -v column="$3" '
    NR == 1 { for (i = 1; i <= NF; ++i) { gsub(/"/, "", $i); if ($i == column) at = i } }
    NR == 1 && !at { print "soak: show has no column " column > "/dev/stderr"; exit 1 }
    NR == 1 { next }
    { gsub(/"/, "", $1); if ($1 == name) { gsub(/"/, "", $at); print $at } }'
}
late='env={AA: 2}' other='env={AA: 1}' waiting=""
# A wait of nothing is none: what computes alone is delayed by a core that is kept busy (tests/worker/planted/test_fault.h).
kind=spin
if awk -v w="$wait_s" 'BEGIN { exit !(w > 0) }'; then kind=delay waiting="kind=delay,step=every,seconds=$wait_s"; fi
export HARNESS_TEST_FAULT="$waiting"
[ -n "$waiting" ] || unset HARNESS_TEST_FAULT
sweep "$folder/before.h5" --rounds 5
step_s=$(cell "$folder/before.h5" baseline step_seconds)
delay_s=$(awk -v s="$step_s" -v p="$percent" 'BEGIN { printf "%.6f", s * p / 100 }')
export HARNESS_TEST_FAULT="${waiting:+$waiting;}case=$late,kind=$kind,step=every,seconds=$delay_s"
sweep "$folder/delay.h5" --rounds "$rounds"
./harness show "$folder/delay.h5" || true
echo "soak: every step of $late was delayed by $delay_s s of $step_s s"
verdict=$(cell "$folder/delay.h5" "$late" verdict)
ratio=$(cell "$folder/delay.h5" "$late" effect_ratio)
[ "$verdict" = slower ] || { echo "soak: $late was called $verdict, not slower" >&2; exit 1; }
awk -v r="$ratio" -v p="$percent" 'BEGIN { exit !(r > 1 + p / 250 && r < 1 + p / 40) }' || {
  echo "soak: $late has a ratio of $ratio; the planted delay was $percent %" >&2; exit 1; }
[ "$(cell "$folder/delay.h5" "$other" verdict)" != slower ] ||
  awk -v r="$(cell "$folder/delay.h5" "$other" effect_ratio)" -v found="$ratio" 'BEGIN { exit !(r < found) }' || {
  echo "soak: $other has no planted delay, but looks as slow" >&2; exit 1; }
echo "soak: the planted delay of $percent % was detected: $late is $verdict, ratio $ratio"
