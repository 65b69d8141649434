#!/bin/bash
# Every check that one GPU allows, in under ten minutes: `make gpu-check`. Prints a table, writes it to a file, goes on
# after a failure. Exit status 0: nothing failed; 1: something did; 3: no GPU here, nothing was checked.
#
# usage: scripts/gpu_check.sh [-o FILE] [--status FILE] [ROW...]
#   -o FILE        the table and the reports of the rows (default gpu-check.txt)
#   --status FILE  append the table in the form of docs/gpu-status.md
#   ROW            only these: operations reference layouts killed absent memcheck racecheck performance pytorch
# environment, all optional:
#   HARNESS=path/to/program  MPIRUN=path/to/mpirun  PYTHON=a python that has torch
#   MODEL=gpt3-1.3b MICRO_BATCH=16    of performance and pytorch (default: as large as the GPU's memory allows)
#   SECONDS_IN_ALL=590                what is not begun by then is not run
#   BACKEND=cpu                       checks the cpu backend instead: to try this script where there is no GPU
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
file=gpu-check.txt status="" rows=()
while [ $# -gt 0 ]; do
  case $1 in
    -o) file=$2; shift 2 ;;
    --status) status=$2; shift 2 ;;
    -*) sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p}' "$0" >&2; exit 1 ;;
    *) rows+=("$1"); shift ;;
  esac
done
say() { echo "gpu-check: $*" >&2; }
first_of() { local f; for f in "$@"; do [ -x "$f" ] && [ ! -d "$f" ] && { echo "$f"; return 0; }; done; return 1; }

backend=${BACKEND:-cuda} started=$SECONDS in_all=${SECONDS_IN_ALL:-590}
# In a bundle the words at the top set up what those in bin/ need.
harness=${HARNESS:-$(first_of "$root/build/release/bin/harness" "$root/harness" "$root/bin/harness")}
if [ ! -x "$harness" ]; then say "no program: run \`make\` first, or name it with HARNESS"; exit 1; fi
mpirun=${MPIRUN:-$(first_of "$root/mpirun" "$root/bin/mpirun" "$(command -v mpirun)")}
configs=$root/configs
[ -d "$configs" ] || configs=$root/share/configs
python=${PYTHON:-python3}

# ---- is there a GPU? ---------------------------------------------------------------------------------------------------
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
rc=0
timeout -k 5 60 "$harness" check operations --backend "$backend" --fast --only 'fill: 1 numbers' \
  > "$folder/first.txt" 2> "$folder/first.err" || rc=$?
if [ $rc = 3 ]; then
  why=$(sed -n 's/^check: nothing can be run: //p' "$folder/first.err" | head -n 1)
  say "no GPU to check here: ${why:-the program says no more}"
  exit 3
fi
if [ $rc = 1 ] && [ ! -s "$folder/first.txt" ]; then
  say "$harness does not work: $(tail -n 1 "$folder/first.err")"
  exit 1
fi
if [ $rc != 0 ]; then
  say "the smallest check of all fails already (exit status $rc):"
  cat "$folder/first.txt" "$folder/first.err" >&2
fi

# Open MPI refuses to run as root unless told to; in a container there is nobody else.
if [ "$(id -u)" = 0 ]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
oversubscribe=""
if [ -n "$mpirun" ] && "$mpirun" --version 2> /dev/null | grep -q -e 'Open MPI' -e OpenRTE; then
  oversubscribe="--oversubscribe --bind-to none"
fi
# Ranks on one GPU are strangers to NCCL and talk over the loopback interface.
if [ "$backend" = cuda ]; then export NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1; fi

gpu_name="" gpu_memory=0 driver=""
if command -v nvidia-smi > /dev/null; then
  gpu_name=$(nvidia-smi --query-gpu=name --format=csv,noheader 2> /dev/null | head -n 1)
  gpu_memory=$(nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits 2> /dev/null | head -n 1)
  driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2> /dev/null | head -n 1)
fi
case $gpu_memory in '' | *[!0-9]*) gpu_memory=0 ;; esac
[ -n "$gpu_name" ] || gpu_name=$(sed -n 's/^\(device\|cpu\): //p' "$folder/first.txt" | head -n 1)
version=$(head -n 1 "$folder/first.txt")

# ---- rows --------------------------------------------------------------------------------------------------------------
names=() verdicts=() times=() details=()
failures=0
record() {  # NAME VERDICT SECONDS DETAIL
  names+=("$1") verdicts+=("$2") times+=("$3") details+=("$4")
  [ "$2" != FAILED ] || failures=$((failures + 1))
  say "$1: $2${4:+ ($4)}, $3 s"
}
wanted() {
  [ ${#rows[@]} = 0 ] && return 0
  local r; for r in "${rows[@]}"; do [ "$r" = "$1" ] && return 0; done; return 1
}
# Runs FUNCTION with the seconds it may take. It leaves its report in $log and a line in $detail; 0: passed, 2: not run.
row() {  # ID LIMIT NAME
  wanted "$1" || return 0
  local limit=$2 left=$((in_all - (SECONDS - started))) begin=$SECONDS rc=0
  log=$folder/$1.txt detail=""
  : > "$log"
  [ "$left" -lt "$limit" ] && limit=$left
  if [ "$limit" -lt 5 ]; then record "$3" "not run" 0 "the $in_all seconds are over"; return 0; fi
  say "$3 …"
  "row_$1" "$limit" || rc=$?
  case $rc in
    0) record "$3" passed $((SECONDS - begin)) "$detail" ;;
    2) record "$3" "not run" $((SECONDS - begin)) "$detail" ;;
    *) record "$3" FAILED $((SECONDS - begin)) "$detail"; tail -n 25 "$log" >&2 ;;
  esac
}
limited() { local limit=$1; shift; timeout -k 10 "$limit" "$@"; }
# What an exit status other than 0 means, for the table.
status_words() { case $1 in 124 | 137) echo "not done within $2 s" ;; 3) echo "nothing ran" ;; *) echo "exit status $1" ;; esac; }
check() {  # LIMIT harness-check-arguments...
  local limit=$1 rc=0; shift
  limited "$limit" "$harness" check "$@" --backend "$backend" >> "$log" 2>> "$log.err" || rc=$?
  detail=$(grep -E '^[0-9]+ checks passed' "$log" | tail -n 1)
  [ $rc = 0 ] && return 0
  cat "$log.err" >> "$log"
  detail="$(status_words $rc "$limit")${detail:+; $detail}"
  return 1
}

fast=""
[ "$backend" = cuda ] || fast=--fast
row_operations() { check "$1" operations $fast; }
row_reference() { check "$1" reference equality; }

# The sweep of several ranks on one GPU. Other backends know neither NCCL nor GPUs that are shared.
config=$folder/check-layouts.yaml
if [ "$backend" = cuda ]; then
  config=$configs/check-layouts.yaml
else
  sed -e "s/^backend: .*/backend: $backend/" -e '/nccl_/d' -e '/^hardware: none/d' -e 's/, share_gpus: true//' \
    "$configs/check-layouts.yaml" > "$config"
fi
sweep() {  # LIMIT NAME arguments...: leaves NAME.json; the exit status is the sweep's
  local limit=$1 name=$2 rc=0; shift 2
  # shellcheck disable=SC2086
  limited "$limit" "$mpirun" $oversubscribe -np 4 "$harness" sweep "$config" -o "$folder/$name.h5" "$@" \
    >> "$log" 2>&1 || rc=$?
  "$harness" show --format json "$folder/$name.h5" > "$folder/$name.json" 2>> "$log" || true
  [ -s "$folder/$name.json" ] || echo '{}' > "$folder/$name.json"
  return $rc
}
# CASE<tab>STATUS<tab>REASON of every case. Each key of the JSON has a line of its own.
cases() {
  awk '/^  "cases"/ {inside = 1}
    !inside {next}
    {value = $0; sub(/^[^:]*: "?/, "", value); sub(/"?,? *$/, "", value)}
    /^      "name": / {name = value} /^      "status": / {status = value}
    /^      "reason": / {printf "%s\t%s\t%s\n", name, status, value}' "$folder/$1.json"
}
need_mpirun() { [ -n "$mpirun" ] && return 0; detail="there is no mpirun: name it with MPIRUN"; return 1; }

row_layouts() {
  need_mpirun || return 2
  local rc=0 bad
  sweep "$1" layouts || rc=$?
  # 4 with every case done: the control came out faster or slower, as it may where ranks share a device.
  if [ $rc != 0 ] && [ $rc != 4 ]; then detail=$(status_words $rc "$1"); return 1; fi
  if ! grep -q '"state": "complete"' "$folder/layouts.json"; then detail="the result is not complete"; return 1; fi
  bad=$(cases layouts | awk -F '\t' '$2 != "ok" {printf "%s%s: %s", (n++ ? "; " : ""), $1, $2}')
  if [ -n "$bad" ]; then detail=$bad; cases layouts >> "$log"; return 1; fi
  local wrong='trains differently|not a finite number|not honoured: '
  bad=$(grep -cE "$wrong" "$folder/layouts.json")
  if [ "$bad" != 0 ]; then
    grep -E "$wrong" "$folder/layouts.json" >> "$log"
    detail="$bad complaints: $(grep -oE -m 1 "$wrong" "$folder/layouts.json" | tr -d ':')"
    return 1
  fi
  bad=$(cases layouts | wc -l)
  if [ "$bad" -lt 2 ]; then detail="the result has $bad cases"; return 1; fi
  detail="$bad cases train alike"
}

memory_used() { nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits 2> /dev/null | awk '{s += $1} END {print s + 0}'; }
# One case goes wrong; it alone must fail, in time, naming the rank; the GPU's memory must be free again.
fault() {  # LIMIT NAME fault seconds-the-case-may-take
  need_mpirun || return 2
  local rc=0 wrong=overlap_grad_reduce=false before=0 after=0 begin took others
  [ "$backend" = cuda ] && command -v nvidia-smi > /dev/null && before=$(memory_used)
  begin=$SECONDS
  HARNESS_TEST_FAULT="rank=1,case=$wrong,$3" sweep "$1" "$2" --only overlap_grad_reduce \
    --set 'measure.deadlines={start: 15 s, step: 10 s}' || rc=$?
  took=$((SECONDS - begin))
  if [ $rc != 4 ]; then detail="$(status_words $rc "$1"), expected 4: one case failed"; return 1; fi
  cases "$2" >> "$log"
  if ! cases "$2" | grep -q "^$wrong	failed	.*rank 1"; then detail="the case is not failed for rank 1"; return 1; fi
  others=$(cases "$2" | grep -v "^$wrong	" | grep -vc '	ok	')
  if [ "$others" != 0 ]; then detail="$others other cases are not ok"; return 1; fi
  detail="the case failed, the others ran, $took s"
  [ "$before" = 0 ] && return 0
  # The driver takes a moment to give a dead process's memory back.
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    after=$(memory_used)
    [ "$after" -le $((before + 64)) ] && { detail="$detail; GPU memory $before MiB before, $after MiB after"; return 0; }
    sleep 1
  done
  detail="GPU memory: $before MiB before, $after MiB ten seconds after"
  return 1
}
row_killed() { fault "$1" killed step=2,kind=kill; }
row_absent() { fault "$1" absent step=-1,kind=hang; }

sanitizer() {  # LIMIT TOOL check-arguments...
  local limit=$1 tool=$2 program rc=0; shift 2
  [ "$backend" = cuda ] || { detail="the $backend backend has no device memory"; return 2; }
  program=$(first_of "$(command -v compute-sanitizer)" /usr/local/cuda/bin/compute-sanitizer)
  [ -n "$program" ] || { detail="compute-sanitizer is not here"; return 2; }
  limited "$limit" "$program" --tool "$tool" --target-processes all --error-exitcode 9 "$harness" check "$@" --backend cuda \
    >> "$log" 2>&1 || rc=$?
  detail=$(grep -o 'ERROR SUMMARY: .*\|RACECHECK SUMMARY: .*' "$log" | tail -n 1)
  [ $rc = 0 ] && return 0
  detail="$(status_words $rc "$limit")${detail:+; $detail}"
  return 1
}
own_kernels=()
for o in fill convert initialize record gelu residual_add column_sum layer_norm embedding cross_entropy adamw \
  attention_merge unfused; do own_kernels+=(--only "$o"); done
row_memcheck() { sanitizer "$1" memcheck operations reference --fast "${own_kernels[@]}"; }
row_racecheck() { sanitizer "$1" racecheck operations --fast "${own_kernels[@]}"; }

# As much as fits with room to spare: 18 bytes a parameter and some 3.3 GB a sequence for 1.3B in bf16.
model=${MODEL:-} micro_batch=${MICRO_BATCH:-}
if [ -z "$model" ]; then
  if [ "$gpu_memory" -ge 120000 ]; then model=gpt3-1.3b micro_batch=${micro_batch:-16}
  elif [ "$gpu_memory" -ge 75000 ]; then model=gpt3-1.3b micro_batch=${micro_batch:-8}
  elif [ "$gpu_memory" -ge 38000 ]; then model=gpt3-1.3b micro_batch=${micro_batch:-2}
  else model=gpt3-125m micro_batch=${micro_batch:-2}; fi
fi
micro_batch=${micro_batch:-1}
row_performance() {
  local steps=()
  [ "$backend" = cuda ] || steps=(--warmup-steps 1 --steps 2)
  check "$1" performance --model "$model" --micro-batch "$micro_batch" --precision bf16 "${steps[@]}" \
    -o "$folder/performance" || return 1
  detail=$(grep -o 'MFU [^;]*\|^step: .*tokens/s' "$log" | tr '\n' ';' | sed 's/;$//; s/;/; /g')
}
number() { sed -n "s/.*\"$1\": *\([0-9.eE+-]*\).*/\1/p" "$2" | tail -n 1; }  # of a JSON text
row_pytorch() {
  local script=$root/bench/pytorch_step.py ours theirs rc ratio
  [ "$backend" = cuda ] || { detail="compared on GPUs only; bench/compare_pytorch.sh does it on CPUs"; return 2; }
  [ -e "$script" ] || script=$root/share/bench/pytorch_step.py
  [ -e "$script" ] || { detail="bench/pytorch_step.py is not here"; return 2; }
  "$python" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2> /dev/null ||
    { detail="$python has no PyTorch with CUDA: name one with PYTHON"; return 2; }
  ours=$(number tokens_per_second "$folder/performance.jsonl" 2> /dev/null)
  [ -n "$ours" ] || { detail="the harness's own step was not timed"; return 2; }
  # What does not fit there is tried with half the sequences: the rate in tokens/s is what is compared.
  local batch=$micro_batch begin=$SECONDS left
  while :; do
    rc=0 left=$(($1 - (SECONDS - begin)))
    if [ "$left" -lt 5 ]; then rc=124; break; fi
    limited "$left" "$python" "$script" --device cuda --model "$model" --micro-batch "$batch" \
      --global-batch "$batch" --precision bf16 --warmup 20 --steps 30 --variants compile,compile+autocast \
      > "$folder/pytorch.json" 2>> "$log" || rc=$?
    if [ $rc = 0 ] || [ $rc = 124 ] || [ "$batch" -lt 2 ]; then break; fi
    batch=$((batch / 2))
  done
  cat "$folder/pytorch.json" >> "$log" 2> /dev/null
  theirs=$(number tokens_per_second "$folder/pytorch.json" 2> /dev/null)
  if [ $rc != 0 ] || [ -z "$theirs" ]; then detail="PyTorch's step: $(status_words $rc "$1")"; return 1; fi
  ratio=$(awk -v a="$ours" -v b="$theirs" 'BEGIN {printf "%.3f", a / b}')
  detail=$(awk -v a="$ours" -v b="$theirs" -v r="$ratio" -v n="$micro_batch" -v m="$batch" \
    'BEGIN {printf "harness %.0f (micro-batch %d), PyTorch %.0f tokens/s (%d): %s x (aim 1.10, below 1 fails)", a, n, b, m, r}')
  awk -v r="$ratio" 'BEGIN {exit !(r >= 1)}'
}

row operations 200 "operations against the cpu's"
row reference 90 "reference and equalities"
row performance 150 "a step of $model, split by kind"
row layouts 240 "2 and 4 ranks on one device"
row killed 90 "a worker killed in a collective"
row absent 180 "a worker that never joins"
row memcheck 150 "compute-sanitizer memcheck"
if [ ${#rows[@]} -gt 0 ]; then row racecheck 200 "compute-sanitizer racecheck"; fi
row pytorch 150 "tokens/s against PyTorch"

# ---- the table ---------------------------------------------------------------------------------------------------------
table() {
  echo "gpu-check: $version"
  echo "device: ${gpu_name:-unknown}${driver:+, driver $driver}; $(date -u +%Y-%m-%dT%H:%MZ); $((SECONDS - started)) s in all"
  echo
  printf '%-36s %-8s %7s  %s\n' check verdict seconds detail
  local i
  for i in "${!names[@]}"; do
    printf '%-36s %-8s %7s  %s\n' "${names[$i]}" "${verdicts[$i]}" "${times[$i]}" "${details[$i]}"
  done
}
{
  table
  for f in "$folder"/*.txt; do
    [ "$f" = "$folder/first.txt" ] && continue
    echo
    echo "---- $(basename "$f" .txt) ----"
    cat "$f"
  done
} > "$file" || say "$file cannot be written"
table
if [ -n "$status" ]; then
  {
    echo
    echo "## $(date -u +%Y-%m-%d), ${gpu_name:-unknown device}${driver:+, driver $driver}, $version"
    echo
    echo "| check | verdict | seconds | detail |"
    echo "|---|---|---|---|"
    for i in "${!names[@]}"; do echo "| ${names[$i]} | ${verdicts[$i]} | ${times[$i]} | ${details[$i]//|//} |"; done
  } >> "$status"
fi
if [ ${#names[@]} = 0 ]; then say "no row of this name: ${rows[*]}"; exit 1; fi
[ "$failures" = 0 ]
