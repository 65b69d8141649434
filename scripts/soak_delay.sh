#!/bin/bash
# Is a delay of 5 % detected, in the right case? Sweeps four copies of the baseline. In one of them, every step of every
# worker is delayed by 5 % of the step time, measured just before. This case must be called slower, by about 5 %. The
# breakdown must show where (the delay is in the input data). No other case may be called slower by as much.
# usage: scripts/soak_delay.sh [percent, default 5]
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/mpi_root.sh
percent=${1:-5}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/delay.yaml" << 'END'
name: delay
backend: cpu
model: {layers: 2, hidden: 128, heads: 2, vocab: 512, sequence: 128}
baseline: {precision: fp32, global_batch_size: 8, micro_batch_size: 4, threads: 1}
sweep: {env: [{AA: 1}, {AA: 2}, {AA: 3}, {AA: 4}]}
measure: {rounds: 24, warmup_steps: 2, steps: 20}
END
sweep() { # output, options…
  local output=$1 code=0
  shift
  # shellcheck disable=SC2086
  mpirun $oversubscribe -np 2 ./harness sweep "$folder/delay.yaml" "$@" -o "$output" > /dev/null 2> "$folder/log" || code=$?
  [ $code = 0 ] || [ $code = 4 ] || { cat "$folder/log" >&2; exit 1; } # 4: the control moved, possibly by chance
}
# The cell of the CSV in the row of this case and the column of this name.
cell() { # file, case, column
  { ./harness show "$1" --format csv || [ $? = 4 ]; } | awk -F, -v name="$2" -v column="$3" '
    NR == 1 { for (i = 1; i <= NF; ++i) { gsub(/"/, "", $i); if ($i == column) at = i } next }
    { gsub(/"/, "", $1); if ($1 == name) { gsub(/"/, "", $at); print $at } }'
}
late='env={AA: 2}'
sweep "$folder/before.h5" --rounds 2
step_s=$(cell "$folder/before.h5" baseline step_seconds)
delay_s=$(awk -v s="$step_s" -v p="$percent" 'BEGIN { printf "%.6f", s * p / 100 }')
export HARNESS_TEST_FAULT="case=$late,kind=delay,step=every,seconds=$delay_s"
sweep "$folder/delay.h5"
./harness show "$folder/delay.h5" || true
echo "soak: every step of $late was delayed by $delay_s s of $step_s s"
verdict=$(cell "$folder/delay.h5" "$late" verdict)
ratio=$(cell "$folder/delay.h5" "$late" ratio)
[ "$verdict" = slower ] || { echo "soak: $late was called $verdict, not slower" >&2; exit 1; }
awk -v r="$ratio" -v p="$percent" 'BEGIN { exit !(r > 1 + p / 250 && r < 1 + p / 40) }' || {
  echo "soak: $late has a ratio of $ratio; the planted delay was $percent %" >&2; exit 1; }
for other in 1 3 4; do
  [ "$(cell "$folder/delay.h5" "env={AA: $other}" verdict)" != slower ] ||
    awk -v r="$(cell "$folder/delay.h5" "env={AA: $other}" ratio)" -v found="$ratio" 'BEGIN { exit !(r < found) }' || {
    echo "soak: env={AA: $other} has no planted delay, but looks as slow" >&2; exit 1; }
done
echo "soak: the planted delay of $percent % was detected: $late is $verdict, ratio $ratio"
