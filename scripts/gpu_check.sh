#!/bin/bash
# Runs every check that one GPU allows, in under ten minutes: `make gpu-check`. It continues after a failure, prints a
# table and writes it to a file. Exit status 0: no row failed; 1: a row failed; 3: there is no GPU, nothing was checked.
#
# usage: scripts/gpu_check.sh [-o FILE] [--status FILE] [ROW...]
#   -o FILE        where to write the table and the reports of the rows (default gpu-check.txt)
#   --status FILE  append the table to FILE, in the format of docs/gpu-status.md
#   ROW            run only these: operations reference layouts killed absent memcheck racecheck performance pytorch
# environment, all optional:
#   HARNESS=path/to/binary  MPIRUN=path/to/mpirun  PYTHON=a python that has torch
#   MODEL=gpt3-1.3b MICRO_BATCH=16    for performance and pytorch (default: as large as the GPU's memory allows)
#   SECONDS_IN_ALL=590                rows that have not started by then do not run
#   BACKEND=cpu                       check the cpu backend instead, to try this script without a GPU
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
# In a bundle, prefer the scripts at the top: they set the environment that the binaries in bin/ need.
harness=${HARNESS:-$(first_of "$root/build/release/bin/harness" "$root/harness" "$root/bin/harness")}
if [ ! -x "$harness" ]; then say "the binary was not found; run \`make\`, or set HARNESS to its path"; exit 1; fi
mpirun=${MPIRUN:-$(first_of "$root/mpirun" "$root/bin/mpirun" "$(command -v mpirun)")}
configs=$root/configs
[ -d "$configs" ] || configs=$root/share/configs
python=${PYTHON:-python3}

# CUDA's libraries, of pip's packages or a toolkit, where the loader does not look by itself.
module=$(first_of "${harness%/*}/libharness_cuda.so" "${harness%/*}/bin/libharness_cuda.so")
if [ "$backend" = cuda ] && [ -n "$module" ]; then
  libraries=$(PYTHON=$python sh "$root/scripts/cuda_libraries.sh" "$module")
  [ -z "$libraries" ] || export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}${LD_LIBRARY_PATH:+:}$libraries"
fi

# ---- is there a GPU? ---------------------------------------------------------------------------------------------------
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
rc=0
timeout -k 5 60 "$harness" selftest operations --backend "$backend" --fast --only 'fill: 1 numbers' \
  > "$folder/first.txt" 2> "$folder/first.err" || rc=$?
if [ $rc = 3 ]; then
  why=$(sed -n 's/^[a-z]*: nothing can be run: //p' "$folder/first.err" | head -n 1)
  say "there is no GPU to check: ${why:-the binary gave no reason}"
  exit 3
fi
if [ $rc = 1 ] && [ ! -s "$folder/first.txt" ]; then
  say "$harness does not run: $(sed -n '$s/^selftest: //; $p' "$folder/first.err")"
  exit 1
fi
if [ $rc != 0 ]; then
  say "even the smallest check fails (exit status $rc):"
  cat "$folder/first.txt" "$folder/first.err" >&2
fi

# Open MPI refuses to run as root unless told to. In a container, root is often the only user.
if [ "$(id -u)" = 0 ]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
oversubscribe=""
if [ -n "$mpirun" ] && "$mpirun" --version 2> /dev/null | grep -q -e 'Open MPI' -e OpenRTE; then
  oversubscribe="--oversubscribe --bind-to none"
fi
# Ranks that share a GPU look like different hosts to NCCL and communicate over the loopback interface.
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
# Calls row_ID with its time limit. It writes its report to $log and one line to $detail; 0: passed, 2: not run.
row() {  # ID LIMIT NAME
  wanted "$1" || return 0
  local limit=$2 left=$((in_all - (SECONDS - started))) begin=$SECONDS rc=0
  log=$folder/$1.txt detail=""
  : > "$log"
  [ "$left" -lt "$limit" ] && limit=$left
  if [ "$limit" -lt 5 ]; then record "$3" "not run" 0 "the limit of $in_all seconds was reached"; return 0; fi
  say "$3 …"
  "row_$1" "$limit" || rc=$?
  case $rc in
    0) record "$3" passed $((SECONDS - begin)) "$detail" ;;
    2) record "$3" "not run" $((SECONDS - begin)) "$detail" ;;
    *) record "$3" FAILED $((SECONDS - begin)) "$detail"; tail -n 25 "$log" >&2 ;;
  esac
}
limited() { local limit=$1; shift; timeout -k 10 "$limit" "$@"; }
# The meaning of an exit status other than 0, for the table.
status_words() {  # STATUS LIMIT
  case $1 in
    124 | 137) echo "not finished within $2 s" ;;
    3) echo "nothing ran" ;;
    *) echo "exit status $1" ;;
  esac
}
selftest() {  # LIMIT arguments...
  local limit=$1 rc=0; shift
  limited "$limit" "$harness" selftest "$@" --backend "$backend" >> "$log" 2>> "$log.err" || rc=$?
  detail=$(grep -E '^[0-9]+ checks passed' "$log" | tail -n 1)
  [ $rc = 0 ] && return 0
  cat "$log.err" >> "$log"
  detail="$(status_words $rc "$limit")${detail:+; $detail}"
  return 1
}

fast=""
[ "$backend" = cuda ] || fast=--fast
row_operations() { selftest "$1" operations $fast; }
row_reference() { selftest "$1" reference equality; }

# The configuration for several ranks on one GPU. Other backends have neither NCCL settings nor shared GPUs.
config=$folder/check-layouts.yaml
if [ "$backend" = cuda ]; then
  config=$configs/check-layouts.yaml
else
  sed -e "s/^backend: .*/backend: $backend/" -e '/nccl_/d' -e '/^hardware: none/d' -e 's/, share_gpus: true//' \
    "$configs/check-layouts.yaml" > "$config"
fi
sweep() {  # LIMIT NAME arguments...: writes NAME.json; the exit status is that of the sweep
  local limit=$1 name=$2 rc=0; shift 2
  # shellcheck disable=SC2086
  limited "$limit" "$mpirun" $oversubscribe -np 4 "$harness" sweep "$config" -o "$folder/$name.h5" "$@" \
    >> "$log" 2>&1 || rc=$?
  "$harness" show --format json "$folder/$name.h5" > "$folder/$name.json" 2>> "$log" || true
  [ -s "$folder/$name.json" ] || echo '{}' > "$folder/$name.json"
  return $rc
}
# CASE<tab>STATUS<tab>REASON of every case. Relies on one line per key in the JSON.
cases() {
  awk '/^  "cases"/ {inside = 1}
    !inside {next}
    {value = $0; sub(/^[^:]*: "?/, "", value); sub(/"?,? *$/, "", value)}
    /^      "name": / {name = value} /^      "status": / {status = value}
    /^      "reason": / {printf "%s\t%s\t%s\n", name, status, value}' "$folder/$1.json"
}
need_mpirun() { [ -n "$mpirun" ] && return 0; detail="mpirun was not found; set MPIRUN to its path"; return 1; }

row_layouts() {
  need_mpirun || return 2
  local rc=0 bad
  sweep "$1" layouts || rc=$?
  # 4 although every case is ok: the control moved, which can happen where ranks share a device.
  if [ $rc != 0 ] && [ $rc != 4 ]; then detail=$(status_words $rc "$1"); return 1; fi
  if ! grep -q '"state": "complete"' "$folder/layouts.json"; then detail="the result is not complete"; return 1; fi
  bad=$(cases layouts | awk -F '\t' '$2 != "ok" {printf "%s%s: %s", (n++ ? "; " : ""), $1, $2}')
  if [ -n "$bad" ]; then detail=$bad; cases layouts >> "$log"; return 1; fi
  local wrong='trains differently|not a finite number|not honoured: '
  bad=$(grep -cE "$wrong" "$folder/layouts.json")
  if [ "$bad" != 0 ]; then
    grep -E "$wrong" "$folder/layouts.json" >> "$log"
    detail="$bad warnings: $(grep -oE -m 1 "$wrong" "$folder/layouts.json" | tr -d ':')"
    return 1
  fi
  bad=$(cases layouts | wc -l)
  if [ "$bad" -lt 2 ]; then detail="the result has only $bad cases"; return 1; fi
  detail="$bad cases train alike"
}

memory_used() { nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits 2> /dev/null | awk '{s += $1} END {print s + 0}'; }
# Plants a fault in one case. Only this case may fail, in time, and name the rank. The GPU's memory must be free again.
fault() {  # LIMIT NAME fault
  need_mpirun || return 2
  local rc=0 wrong=overlap_grad_reduce=false before=0 after=0 begin took others
  [ "$backend" = cuda ] && command -v nvidia-smi > /dev/null && before=$(memory_used)
  begin=$SECONDS
  HARNESS_TEST_FAULT="rank=1,case=$wrong,$3" sweep "$1" "$2" --only overlap_grad_reduce \
    --set 'measure.deadlines={start: 15 s, step: 10 s}' || rc=$?
  took=$((SECONDS - begin))
  if [ $rc != 4 ]; then detail="$(status_words $rc "$1"); expected 4 (one case failed)"; return 1; fi
  cases "$2" >> "$log"
  if ! cases "$2" | grep -q "^$wrong	failed	.*rank 1"; then
    detail="the case did not fail because of rank 1"
    return 1
  fi
  others=$(cases "$2" | grep -v "^$wrong	" | grep -vc '	ok	')
  if [ "$others" != 0 ]; then detail="other cases that are not ok: $others"; return 1; fi
  detail="the case failed, the others ran; $took s"
  [ "$before" = 0 ] && return 0
  # The driver takes a moment to release the memory of a dead process.
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    after=$(memory_used)
    [ "$after" -le $((before + 64)) ] && { detail="$detail; GPU memory $before MiB before, $after MiB after"; return 0; }
    sleep 1
  done
  detail="GPU memory: $before MiB before, $after MiB ten seconds later"
  return 1
}
row_killed() { fault "$1" killed step=2,kind=kill; }
row_absent() { fault "$1" absent step=-1,kind=hang; }

sanitizer() {  # LIMIT TOOL selftest-arguments...
  local limit=$1 tool=$2 program rc=0; shift 2
  [ "$backend" = cuda ] || { detail="the $backend backend has no device memory"; return 2; }
  program=$(first_of "$(command -v compute-sanitizer)" /usr/local/cuda/bin/compute-sanitizer)
  [ -n "$program" ] || { detail="compute-sanitizer was not found"; return 2; }
  limited "$limit" "$program" --tool "$tool" --target-processes all --error-exitcode 9 "$harness" selftest "$@" --backend cuda \
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

# As much as fits with room to spare: for 1.3B in bf16, 18 bytes per parameter and about 3.3 GB per sequence.
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
  selftest "$1" performance --model "$model" --micro-batch "$micro_batch" --precision bf16 "${steps[@]}" \
    -o "$folder/performance" || return 1
  detail=$(grep -o 'MFU [^;]*\|^step: .*tokens/s' "$log" | tr '\n' ';' | sed 's/;$//; s/;/; /g')
}
number() { sed -n "s/.*\"$1\": *\([0-9.eE+-]*\).*/\1/p" "$2" | tail -n 1; }  # the last value of a key in a JSON file
row_pytorch() {
  local script=$root/bench/pytorch_step.py ours theirs rc ratio
  [ "$backend" = cuda ] || { detail="for GPUs only; on CPUs, use bench/compare_pytorch.sh"; return 2; }
  [ -e "$script" ] || script=$root/share/bench/pytorch_step.py
  [ -e "$script" ] || { detail="bench/pytorch_step.py was not found"; return 2; }
  "$python" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2> /dev/null ||
    { detail="$python has no PyTorch with CUDA; set PYTHON to one that has"; return 2; }
  ours=$(number tokens_per_second "$folder/performance.jsonl" 2> /dev/null)
  [ -n "$ours" ] || { detail="the step of harness was not timed (row performance)"; return 2; }
  # If the batch does not fit in PyTorch, try half of it: the comparison is by tokens/s.
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
  if [ $rc != 0 ] || [ -z "$theirs" ]; then detail="the step of PyTorch: $(status_words $rc "$1")"; return 1; fi
  ratio=$(awk -v a="$ours" -v b="$theirs" 'BEGIN {printf "%.3f", a / b}')
  detail=$(awk -v a="$ours" -v b="$theirs" -v r="$ratio" -v n="$micro_batch" -v m="$batch" \
    'BEGIN {printf "harness %.0f (micro-batch %d), PyTorch %.0f tokens/s (%d): %s x (goal 1.10, fails below 1)", a, n, b, m, r}')
  awk -v r="$ratio" 'BEGIN {exit !(r >= 1)}'
}

row operations 200 "operations against the cpu backend"
row reference 90 "reference and equalities"
row performance 150 "a step of $model, by operation"
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
if [ ${#names[@]} = 0 ]; then say "unknown row: ${rows[*]}"; exit 1; fi
[ "$failures" = 0 ]
