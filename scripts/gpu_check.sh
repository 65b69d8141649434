#!/bin/bash
# Runs every check that one GPU allows, within nine minutes: `make gpu-check`. What tells most comes first. It continues
# after a failure. Each row is printed and written when it ends, so whatever ends this script, the finished rows are
# there. Exit status 0: no row failed; 1: a row failed, or the program cannot run; 3: there is no GPU, nothing was
# checked; 143: interrupted.
#
# usage: scripts/gpu_check.sh [-o FILE] [--status FILE] [--keep DIR] [ROW...]
#   -o FILE        where to write the table, and at the end the reports of the rows (default gpu-check.txt)
#   --status FILE  append the table to FILE, in the format of docs/gpu-status.md
#   --keep DIR     keep every row's files in DIR: reports, JSON, results, what torch.compile has compiled
#   ROW            run only these: environment performance pytorch operations reference layouts killed absent memcheck
#                  large; racecheck runs only when named
# environment, all optional:
#   HARNESS=path/to/binary  MPIRUN=path/to/mpirun  PYTHON=a python that has torch
#   MODEL=gpt3-1.3b MICRO_BATCH=16    for performance and pytorch (default: as large as the GPU's memory allows)
#   PYTORCH_VARIANTS=compile          of bench/pytorch_step.py, with commas; each adds minutes
#   SECONDS_IN_ALL=540                the limit of all rows together; what has no time left does not run
#   ROW_SECONDS=N                     no row may take longer
#   BACKEND=cpu                       check the cpu backend instead, to try this script without a GPU
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
file=gpu-check.txt status="" keep="" rows=()
while [ $# -gt 0 ]; do
  case $1 in
    -o) file=$2; shift 2 ;;
    --status) status=$2; shift 2 ;;
    --keep) keep=$2; shift 2 ;;
    -*) sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p}' "$0" >&2; exit 1 ;;
    *) rows+=("$1"); shift ;;
  esac
done
say() { echo "gpu-check: $*" >&2; }
first_of() { local f; for f in "$@"; do [ -x "$f" ] && [ ! -d "$f" ] && { echo "$f"; return 0; }; done; return 1; }

known=" environment performance pytorch operations reference layouts killed absent memcheck racecheck large "
for r in ${rows[@]+"${rows[@]}"}; do
  case $known in *" $r "*) ;; *) say "unknown row: $r; known:$known"; exit 1 ;; esac
done
backend=${BACKEND:-cuda} started=$SECONDS in_all=${SECONDS_IN_ALL:-540}
# In a bundle, prefer the scripts at the top: they set the environment that the binaries in bin/ need.
harness=${HARNESS:-$(first_of "$root/build/release/bin/harness" "$root/harness" "$root/bin/harness")}
if [ ! -x "$harness" ]; then say "the binary was not found; run \`make\`, or set HARNESS to its path"; exit 1; fi
mpirun=${MPIRUN:-$(first_of "$root/mpirun" "$root/bin/mpirun" "$(command -v mpirun)")}
configs=$root/configs
[ -d "$configs" ] || configs=$root/share/configs
python=${PYTHON:-python3}

# CUDA's libraries, of pip's packages or a toolkit, where the loader does not look by itself. PyTorch finds its own.
libraries_of_python=${LD_LIBRARY_PATH:-}
module=${harness%/*}/libharness_cuda.so
[ -e "$module" ] || module=${harness%/*}/bin/libharness_cuda.so
if [ "$backend" = cuda ] && [ -e "$module" ]; then
  libraries=$(PYTHON=$python sh "$root/scripts/cuda_libraries.sh" "$module")
  [ -z "$libraries" ] || export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}${LD_LIBRARY_PATH:+:}$libraries"
fi

# ---- files, and how it ends --------------------------------------------------------------------------------------------
folder=${keep:-$(mktemp -d)}
mkdir -p "$folder" || exit 1
folder=$(cd "$folder" && pwd)
written="" running=""
finish() {  # the reports follow the table
  local f
  if [ -n "$written" ]; then
    for f in "$folder"/*.txt; do
      case ${f##*/} in first.txt) continue ;; esac
      [ -e "$f" ] && printf '\n---- %s ----\n' "$(basename "$f" .txt)" && cat "$f"
    done >> "$file"
  fi
  [ -n "$keep" ] || rm -rf "$folder"
}
interrupted() {
  trap '' TERM INT HUP
  local jobs
  jobs=$(jobs -p)
  # shellcheck disable=SC2086
  [ -z "$jobs" ] || { kill $jobs; wait $jobs; } 2> /dev/null
  [ ! -s "${log:-}.part" ] || cat "$log.part" >> "$log"
  [ -z "$running" ] || record "$running" "not run" 0 "interrupted"
  exit 143
}
exec 3>&1  # an interrupted row has its own stdout
trap finish EXIT
trap interrupted TERM INT HUP

grace=5  # seconds from being told to end to being killed
# In the background, because bash handles signals only while it waits.
limited() {  # SECONDS COMMAND...
  local limit=$1 rc=0; shift
  timeout -k "$grace" "$limit" "$@" &
  wait $! || rc=$?
  return $rc
}
limited_python() { local limit=$1; shift; limited "$limit" env LD_LIBRARY_PATH="$libraries_of_python" "$python" "$@"; }

# ---- is there a GPU? ---------------------------------------------------------------------------------------------------
rc=0
limited 60 "$harness" selftest operations --backend "$backend" --fast --only 'fill: 1 numbers' \
  > "$folder/first.txt" 2> "$folder/first.err" || rc=$?
if [ $rc = 3 ]; then
  why=$(sed -n 's/^[a-z]*: nothing can be run: //p' "$folder/first.err" | head -n 1)
  say "there is no GPU to check: ${why:-the binary gave no reason}"
  exit 3
fi
if { [ $rc = 1 ] || [ $rc = 126 ] || [ $rc = 127 ]; } && [ ! -s "$folder/first.txt" ]; then
  say "$harness does not run: $(sed -n '$s/^selftest: //; $p' "$folder/first.err")"
  exit 1
fi
if [ $rc != 0 ]; then
  say "even the smallest check fails (exit status $rc):"
  cat "$folder/first.txt" "$folder/first.err" >&2
fi

gpu_name="" gpu_memory=0 driver=""
ask_gpu() { timeout -k "$grace" 20 nvidia-smi --query-gpu="$1" --format=csv,noheader,nounits 2> /dev/null; }  # can hang
if command -v nvidia-smi > /dev/null; then gpu_name=$(ask_gpu name | head -n 1); fi
can_ask_gpu=$gpu_name
if [ -n "$can_ask_gpu" ]; then
  gpu_memory=$(ask_gpu memory.total | head -n 1)
  driver=$(ask_gpu driver_version | head -n 1)
fi
case $gpu_memory in '' | *[!0-9]*) gpu_memory=0 ;; esac
[ -n "$gpu_name" ] || gpu_name=$(sed -n 's/^\(device\|cpu\): //p' "$folder/first.txt" | head -n 1)
version=$(head -n 1 "$folder/first.txt")

# ---- the table ---------------------------------------------------------------------------------------------------------
# shellcheck disable=SC2059
put() { printf "$@" >&3; [ -z "$written" ] || printf "$@" >> "$file"; }  # printf's arguments
failures=0
record() {  # NAME VERDICT SECONDS DETAIL
  [ "$2" != FAILED ] || failures=$((failures + 1))
  put '%-36s %-8s %7s  %s\n' "$1" "$2" "$3" "$4"
  [ -z "$status" ] || echo "| $1 | $2 | $3 | ${4//|//} |" >> "$status"
}
if : > "$file"; then written=1; else say "$file cannot be written"; fi
put 'gpu-check: %s\n' "$version"
put 'device: %s; %s\n\n' "${gpu_name:-unknown}${driver:+, driver $driver}" "$(date -u +%Y-%m-%dT%H:%MZ)"
put '%-36s %-8s %7s  %s\n' check verdict seconds detail
if [ -n "$status" ]; then
  printf '\n## %s, %s, %s\n\n| check | verdict | seconds | detail |\n|---|---|---|---|\n' "$(date -u +%Y-%m-%d)" \
    "${gpu_name:-unknown device}${driver:+, driver $driver}" "$version" >> "$status"
fi

wanted() {
  [ ${#rows[@]} = 0 ] && return 0
  local r; for r in "${rows[@]}"; do [ "$r" = "$1" ] && return 0; done; return 1
}
# Calls row_ID with its time limit. It writes its report to $log and one line to $detail; 0: passed, 2: not run.
row() {  # ID LIMIT AT_LEAST NAME; with less than AT_LEAST seconds left there is no point in starting it
  wanted "$1" || return 0
  local limit=$2 left=$((in_all - (SECONDS - started) - grace)) begin=$SECONDS rc=0
  log=$folder/$1.txt detail=""
  if [ "$left" -lt "$3" ]; then
    record "$4" "not run" 0 "needs $3 of the $in_all seconds in all, $((left > 0 ? left : 0)) are left"
    return 0
  fi
  [ "$left" -ge "$limit" ] || limit=$left
  [ "${ROW_SECONDS:-$limit}" -ge "$limit" ] || limit=$ROW_SECONDS
  say "$4 …"
  : > "$log"
  running=$4
  "row_$1" "$limit" || rc=$?
  running=""
  case $rc in
    0) record "$4" passed $((SECONDS - begin)) "$detail" ;;
    2) record "$4" "not run" $((SECONDS - begin)) "$detail" ;;
    *) record "$4" FAILED $((SECONDS - begin)) "$detail"; tail -n 25 "$log" >&2 ;;
  esac
}

# shellcheck source=scripts/gpu_check_rows.sh
. "$root/scripts/gpu_check_rows.sh"
row environment 90 5 "clocks, power, versions, libraries"
row performance 240 20 "a step of $model, by operation"
row pytorch 300 60 "tokens/s against PyTorch"
row operations 120 5 "operations against the cpu backend"
row reference 150 5 "reference and equalities"
row layouts 400 90 "2 and 4 ranks on one device"
row killed 120 60 "a worker that is killed"
row absent 240 120 "a worker that is frozen"
row memcheck 150 30 "compute-sanitizer memcheck"
row large 300 30 "operations at real sizes"
if [ ${#rows[@]} -gt 0 ]; then row racecheck 200 30 "compute-sanitizer racecheck"; fi
put '\n%d s in all\n' $((SECONDS - started))
[ "$failures" = 0 ]
