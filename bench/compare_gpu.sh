#!/bin/bash
# Runs the same training step with harness, PyTorch and llm.c in turns on one GPU, and prints tokens/s, the time per step
# and the ratios. A side that is absent or fails is named, and the others run. Needs no Python but for PyTorch.
#
# usage: bench/compare_gpu.sh [-o FILE] [options]      (bench/README.md says what is compared, and how fairly)
#   -o FILE                  where to write all runs and the ratios as JSON (default compare-gpu.json)
#   --model gpt3-1.3b        a model of bench/pytorch_step.py; sequences of 2048, bf16
#   --micro-batch 16         sequences per step, on all sides
#   --best-of-each           --micro-batch is a list (8,16,32); each side runs with the one that is best for it
#   --rounds 3  --warmup 20  --steps 30
#   --pytorch sdpa,compile,compile+autocast   its variants; the fastest takes part in the rounds
#   --llmc DIR               what bench/build_llmc.sh made (default build/llm.c)
#   --limit 300              seconds that one run may take
#   --seconds-in-all N       no run starts or goes on after this time; the table has what is done
#   --keep DIR               the outputs of all runs, and what torch.compile has compiled (default build/compare-gpu)
# environment, all optional: HARNESS=path/to/binary  PYTHON=a python that has torch
# Exit status 0: harness was measured; 1: it was not, or wrong arguments; 143: interrupted.
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
say() { echo "compare: $*" >&2; }
file=compare-gpu.json model=gpt3-1.3b micro_batches=16 best_of_each="" rounds=3 warmup=20 steps=30
variants=sdpa,compile,compile+autocast llmc=$root/build/llm.c limit=300 in_all=1000000 keep=$root/build/compare-gpu
while [ $# -gt 0 ]; do
  case $1 in
    --best-of-each) best_of_each=1; shift; continue ;;
    -o | --model | --micro-batch | --rounds | --warmup | --steps | --pytorch | --llmc | --limit | --seconds-in-all | --keep) ;;
    *) sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p}' "$0" >&2; exit 1 ;;
  esac
  [ $# -ge 2 ] || { say "$1 needs a value"; exit 1; }
  case $1 in
    -o) file=$2 ;;
    --model) model=$2 ;;
    --micro-batch) micro_batches=$2 ;;
    --pytorch) variants=$2 ;;
    --llmc) llmc=$2 ;;
    --keep) keep=$2 ;;
    *) # whole numbers
      case $2 in '' | *[!0-9]*) say "$1: found '$2'; expected a whole number"; exit 1 ;; esac
      case $1 in
        --rounds) rounds=$2 ;;
        --warmup) warmup=$2 ;;
        --steps) steps=$2 ;;
        --limit) limit=$2 ;;
        --seconds-in-all) in_all=$2 ;;
      esac ;;
  esac
  shift 2
done
case $micro_batches in *[!0-9,]* | '') say "--micro-batch: found '$micro_batches'; expected 16, or 8,16,32"; exit 1 ;; esac
case $micro_batches in
  *,*) [ -n "$best_of_each" ] || { say "--micro-batch $micro_batches: several need --best-of-each"; exit 1; } ;;
esac
if [ "$rounds" = 0 ] || [ "$steps" = 0 ]; then say "--rounds and --steps must be at least 1"; exit 1; fi
mkdir -p "$keep" || exit 1
keep=$(cd "$keep" && pwd)
rm -f "$keep"/run-* "$keep"/*.tsv
: > "$file" || { say "$file cannot be written"; exit 1; }
sequence=2048 started=$SECONDS

# shellcheck source=bench/compare_gpu_sides.sh
. "$root/bench/compare_gpu_sides.sh"

# ---- the table, whatever ends this script --------------------------------------------------------------------------------
runs=$keep/runs.tsv notes=$keep/notes.tsv versions=$keep/versions.tsv
: > "$runs"; : > "$notes"; : > "$versions"
gpu=$(timeout 20 nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2> /dev/null | head -n 1)
finish() {
  awk -f "$root/bench/compare_gpu_table.awk" -v json="$file" -v model="$model" -v sequence=$sequence -v warmup="$warmup" \
    -v steps="$steps" -v rounds="$rounds" -v device="${gpu:-unknown}" -v date="$(date -u +%Y-%m-%dT%H:%MZ)" \
    kind=note "$notes" kind=version "$versions" kind=run "$runs" >&3
}
interrupted() {
  trap '' TERM INT HUP
  local jobs
  jobs=$(jobs -p)
  # shellcheck disable=SC2086
  [ -z "$jobs" ] || { kill $jobs; wait $jobs; } 2> /dev/null
  note all "interrupted"
  finish
  exit 143
}
exec 3>&1  # an interrupted run has its own stdout
trap interrupted TERM INT HUP
note() { printf '%s\t%s\n' "$1" "$2" >> "$notes"; }

# ---- one run ---------------------------------------------------------------------------------------------------------------
grace=5 number=0  # seconds from being told to end to being killed; of runs
# In the background, because bash handles signals only while it waits.
limited() {  # SECONDS COMMAND...
  local seconds=$1 rc=0; shift
  timeout -k "$grace" "$seconds" "$@" &
  wait $! || rc=$?
  return $rc
}
# Runs SIDE, which leaves its times in median, fastest, slowest and tokens_per_second, or says why in `reason`. A line of
# runs.tsv tells what came out. `round` 0: to choose a variant.
one_run() {  # ROUND SIDE VARIANT MICRO_BATCH
  local round=$1 side=$2 variant=$3 micro_batch=$4 seconds=$limit left status=ok begin=$SECONDS
  median="" fastest="" slowest="" tokens_per_second=0 reason=""
  number=$((number + 1))
  log=$keep/run-$number-$side.txt
  left=$((in_all - (SECONDS - started) - grace))
  [ "$left" -ge "$seconds" ] || seconds=$left
  if [ "$seconds" -lt 1 ]; then
    status="not run" reason="none of the $in_all seconds in all is left"
  else
    say "$([ "$round" = 0 ] && echo choosing || echo "round $round of $rounds"): $side $variant, micro-batch $micro_batch …"
    "run_$side" "$seconds" "$variant" "$micro_batch" || status=failed
  fi
  printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$round" "$side" "$variant" "$micro_batch" "$status" "$median" \
    "$fastest" "$slowest" "$tokens_per_second" "$((SECONDS - begin))" "$(tr '\t\n' '  ' <<< "$reason")" >> "$runs"
  if [ "$status" = ok ]; then
    say "$side: $(awk -v t="$median" -v r="$tokens_per_second" 'BEGIN {printf "%.1f ms, %.0f tokens/s", 1e3 * t, r}')"
    return 0
  fi
  say "$side: $reason"
  return 1
}

# ---- who takes part, and with what ----------------------------------------------------------------------------------------
sides=()
declare -A chosen_variant chosen_batch lost
for side in harness pytorch llmc; do
  reason=""
  if ! "find_$side"; then note $side "absent: $reason"; say "$side: absent: $reason"; continue; fi
  mapfile -t candidates < <(for v in "${side_variants[@]}"; do for b in ${micro_batches//,/ }; do echo "$v|$b"; done; done)
  best=0 chosen=""
  for candidate in "${candidates[@]}"; do
    variant=${candidate%|*} batch=${candidate##*|}
    if [ ${#candidates[@]} = 1 ]; then chosen=$candidate; break; fi
    one_run 0 $side "$variant" "$batch" || continue
    if awk -v a="$tokens_per_second" -v b="$best" 'BEGIN {exit !(a > b)}'; then best=$tokens_per_second chosen=$candidate; fi
  done
  if [ -z "$chosen" ]; then note $side "not compared: $reason"; continue; fi
  sides+=("$side")
  chosen_variant[$side]=${chosen%|*} chosen_batch[$side]=${chosen##*|} lost[$side]=0
done

for ((round = 1; round <= rounds; round++)); do
  for side in ${sides[@]+"${sides[@]}"}; do
    [ "${lost[$side]}" -lt 2 ] || continue  # it would fail again, and cost its limit each time
    if one_run $round "$side" "${chosen_variant[$side]}" "${chosen_batch[$side]}"; then
      lost[$side]=0
    else
      lost[$side]=$((lost[$side] + 1))
      [ "${lost[$side]}" -lt 2 ] || note "$side" "left out after two runs in a row failed: $reason"
    fi
  done
done
finish
say "all runs: $file; their outputs: $keep"
awk -F '\t' '$1 > 0 && $2 == "harness" && $5 == "ok" {n++} END {exit !n}' "$runs"
