#!/bin/bash
# Are the verdicts of a grid as reliable as declared, on this machine? First, sweeps in which nothing changes: a
# collective of five sizes, a setting that nothing reads, and a smallest effect close to zero, so that no threshold hides
# anything. One sweep in twenty may call any of the five faster or slower; six or more false sweeps of forty happen once
# in seventy runs, and count as a failure. Then, sweeps in which every step of that setting at one of three sizes is
# delayed by 3 % of the step time, measured just before: nine of ten must call this one slower, and none another size by
# as much. There every step also waits for 0.1 s, as a host waits for its GPU: the blocks of messages that are all
# latency scatter by 5 % where ranks and their network threads share two cores, and 3 % would take hundreds of rounds.
# usage: scripts/soak_sizes.sh [sweeps without a change, default 40] [with one, default 10]
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/mpi_root.sh
export HARNESS_BINARY=$PWD/build/release/with_hooks/harness  # takes HARNESS_TEST_FAULT
sweeps=${1:-40} delayed_sweeps=${2:-10}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sizes() { # name, repetitions, sizes in bytes, measure
  cat > "$folder/$1.yaml" << YAML
name: $1
workload: collective
backend: cpu
baseline: {collective: all_reduce, message_size: 65536 B, precision: fp32, repetitions: $2}
sweep: {message_size: [$3], env: [{SOAK_NOTHING: 1}]}
measure: {$4}
YAML
}
sizes same 20 "65524 B, 65528 B, 65540 B, 65544 B" "rounds: 8, warmup_steps: 2, steps: 20, smallest_effect: 0.05 %"
sizes delay 20 "65532 B, 65540 B" "rounds: 12, warmup_steps: 1, steps: 5, smallest_effect: 0.5 %"
sweep() { # configuration, output, options…
  local config=$1 output=$2 code=0
  shift 2
  # shellcheck disable=SC2086
  mpirun $oversubscribe -np 2 ./harness sweep "$folder/$config.yaml" "$@" -o "$output" > /dev/null 2> "$folder/log" || code=$?
  [ $code = 0 ] || [ $code = 4 ] || { cat "$folder/log" >&2; exit 1; } # 4: the control moved, possibly by chance
}
# Of the setting at each size, and of the baseline: case, verdict, ratio, step time.
verdicts() { # file
  { ./harness show "$1" --format csv || [ $? = 4 ]; } | awk -F, '
    NR == 1 { for (i = 1; i <= NF; ++i) at[$i] = i; next }
    $1 ~ /^env=/ || $1 == "baseline" { print $1 "," $at["verdict"] "," $at["effect_ratio"] "," $at["step_seconds"] }'
}

false_sweeps=0
for seed in $(seq 1 "$sweeps"); do
  sweep same "$folder/same$seed.h5" --seed "$seed"
  wrong=$(verdicts "$folder/same$seed.h5" | awk -F, '$2 == "faster" || $2 == "slower"' | wc -l)
  [ "$wrong" = 0 ] || false_sweeps=$((false_sweeps + 1))
  echo "soak: a grid without a change, sweep $seed of $sweeps: $wrong of 5 were called faster or slower"
done
echo "soak: $false_sweeps of $sweeps sweeps of a grid without a change had a false verdict; 5 % are expected"

setting="env={SOAK_NOTHING: 1} at message_size="
late="${setting}65540 B" other="${setting}65532 B"
waiting="kind=delay,step=every,seconds=0.1"
found=0 blamed=0
for seed in $(seq 1 "$delayed_sweeps"); do
  HARNESS_TEST_FAULT=$waiting sweep delay "$folder/before$seed.h5" --seed "$seed" --rounds 3
  delay_s=$(verdicts "$folder/before$seed.h5" | awk -F, '$1 == "baseline" { printf "%.6f", 0.03 * $4 }')
  HARNESS_TEST_FAULT="$waiting;case=$late,kind=delay,step=every,seconds=$delay_s" \
    sweep delay "$folder/delay$seed.h5" --seed "$seed"
  rows=$(verdicts "$folder/delay$seed.h5")
  is_found=$(awk -F, -v late="$late" 'index($1, late) && $2 == "slower"' <<< "$rows" | wc -l)
  is_blamed=$(awk -F, -v late="$late" -v other="$other" '
    index($1, late) { planted = $3 }
    index($1, other) { verdict = $2; ratio = $3 }
    END { if (verdict == "slower" && ratio >= planted) print }' <<< "$rows" | wc -l)
  found=$((found + is_found)) blamed=$((blamed + is_blamed))
  echo "soak: a delay of 3 % ($delay_s s), sweep $seed of $delayed_sweeps: $(grep ^env= <<< "$rows" | tr '\n' ' ')"
done
echo "soak: the delay was found in $found of $delayed_sweeps sweeps; its neighbour was blamed in $blamed"

[ $((false_sweeps * 40)) -lt $((6 * sweeps)) ] || [ "$sweeps" -lt 10 ]
[ $((found * 10)) -ge $((9 * delayed_sweeps)) ] && [ "$blamed" = 0 ]
