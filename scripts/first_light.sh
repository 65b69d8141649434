#!/bin/bash
# Tests a single GPU in two commands of at most 4 and 7 minutes, from a bundle (`make bundle`) or a source tree (`make
# gpu-check` runs both). The first checks that the cuda backend is right: operations, training, memory errors, layouts
# on four ranks, all at once. The second measures, and has the device to itself: a sweep, PyTorch's step if PyTorch is
# installed, the sweep's baseline again, a killed worker, a doctor under load and, if there is time, a calibration. Both
# continue after a failure, and finished parts are kept however the script ends.
#
# usage: scripts/first_light.sh [1|2]      (both without a number)
# environment, all optional:
#   OUT=DIR          what is to be read: tables, and an archive of all reports (default first-light)
#   KEPT=DIR         where the parts work; command 2 finds here what command 1 compiled (default /tmp/harness-first-light)
#   LIMIT=N          seconds for each command (default 230 and 400)
#   BACKEND=cpu      a rehearsal without a GPU
#   MODEL=NAME MICRO_BATCH=N     of command 2 (default gpt3-1.3b, as many sequences as the GPU's memory allows)
#   HARNESS=FILE MPIRUN=FILE PYTHON=FILE     other programs than those beside this script and in the PATH
# Exit status: 0: every part passed; 1: a part failed, or the program cannot run; 3: there is no GPU.
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
case ${1:-} in
  "") rc=0; "$0" 1 || rc=$?; [ $rc = 3 ] || "$0" 2 || rc=$?; exit $rc ;;
  1) limit=${LIMIT:-230} ;;
  2) limit=${LIMIT:-400} ;;
  *) sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p}' "$0" >&2; exit 1 ;;
esac
command=$1
backend=${BACKEND:-cuda} out=${OUT:-first-light} kept=${KEPT:-/tmp/harness-first-light}
mkdir -p "$out" "$kept" && out=$(cd "$out" && pwd) && kept=$(cd "$kept" && pwd) && cd "$root" || exit 1
harness=${HARNESS:-$root/harness} mpirun=${MPIRUN:-$root/mpirun} python=${PYTHON:-python3} configs=$root/configs
[ -x "$mpirun" ] || mpirun=$(command -v mpirun)
[ -d "$configs" ] || configs=$root/share/configs
if [ "$(id -u)" = 0 ]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
case $("$mpirun" --version 2> /dev/null) in
  *"Open MPI"* | *OpenRTE*) ranks="--oversubscribe --bind-to none" ;;  # other MPIs refuse these options
  *) ranks="" ;;
esac

# PyTorch finds CUDA's libraries by itself; harness may need those of PyTorch's packages.
libraries_of_python=${LD_LIBRARY_PATH:-} module=${harness%/*}/libharness_cuda.so
[ -e "$module" ] || module=$root/bin/libharness_cuda.so
[ -e "$module" ] || module=$root/build/release/bin/libharness_cuda.so
if [ "$backend" = cuda ] && [ -e "$module" ]; then
  libraries=$(PYTHON=$python sh scripts/cuda_libraries.sh "$module")
  [ -z "$libraries" ] || export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}${LD_LIBRARY_PATH:+:}$libraries"
fi

rc=0
timeout -k 5 60 "$harness" selftest operations --backend "$backend" --fast --only 'fill: 1 numbers' \
  > "$kept/first.txt" 2>&1 || rc=$?
if [ $rc = 3 ]; then
  echo "first-light: there is no GPU: $(sed -n 's/^[a-z]*: nothing can be run: //p' "$kept/first.txt" | head -n 1)" >&2
  exit 3
elif [ $rc != 0 ]; then
  echo "first-light: $harness does not run: $(grep -v '^ *$' "$kept/first.txt" | tail -n 1)" >&2
  exit 1
fi

model=${MODEL:-gpt3-1.3b} micro_batch=${MICRO_BATCH:-8} few=""
if [ "$backend" = cuda ]; then
  memory=$(timeout 20 nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits | head -n 1)
  if [ "${memory:-0}" -ge 120000 ]; then micro_batch=${MICRO_BATCH:-16}; fi
  if [ "${memory:-80000}" -lt 75000 ]; then model=${MODEL:-gpt3-350m}; fi
  # NCCL takes 34 MiB of shared memory for each rank and communicator, and four ranks in TP 2 x PP 2 have many. Ranks
  # that share a GPU appear to it as different hosts and use the loopback interface. Containers often lack both.
  ip link set lo up
  [ "$(df -Pk /dev/shm | awk 'NR == 2 {print $2}')" -ge 4000000 ] || mount -o remount,size=4g /dev/shm
  export NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1
else
  model=tiny micro_batch=1 few="--set measure.rounds=1 --set measure.steps=2 --set measure.warmup_steps=1"
fi 2> "$kept/preparation.txt"
layouts=$configs/check-layouts.yaml speed=$configs/first-light.yaml
if [ "$backend" != cuda ]; then  # without what only NCCL and GPUs have
  layouts=$kept/check-layouts.yaml speed=$kept/first-light.yaml
  sed -e "s/^backend: .*/backend: $backend/" -e '/nccl_/d' -e '/^hardware: none/d' -e 's/, share_gpus: true//' \
    "$configs/check-layouts.yaml" > "$layouts"
  sed -e "s/^backend: .*/backend: $backend/" -e 's/^model: .*/model: {layers: 2, hidden: 64, heads: 2, vocab: 512, sequence: 64}/' \
    -e '/cuda_graph/d' "$configs/first-light.yaml" > "$speed"
  model=""
fi

left() { echo $((limit - SECONDS - ${1:-0})); }
# Each process writes a file of its own: one that was killed leaves its tar behind, still writing.
keep() {
  local file=$kept.$BASHPID.tgz
  tar czf "$file" --exclude=inductor -C "${kept%/*}" "${kept##*/}" && mv "$file" "$out/kept$command.tgz"
}
(while sleep 15 && kill -0 $$; do keep; done) > /dev/null 2>&1 &
keeper=$!
trap 'kill $keeper; keep; rm -f "$kept.$keeper.tgz"' EXIT
say() { echo "$*" | tee -a "$out/table$command.txt"; }

# Runs a part for at most SECONDS and adds a line to the table. A part without time left fails.
part() {  # NAME SECONDS COMMAND...
  local name=$1 most=$2 begin=$SECONDS rc=0 words; shift 2
  [ "$most" -le "$(left 5)" ] || most=$(left 5)
  if [ "$most" -lt 5 ]; then
    rc=no
  else
    timeout -k 5 "$most" "$@" > "$kept/$name.txt" 2>&1 || rc=$?
  fi
  case $rc in
    0) words="passed  $(grep -E '^[0-9]+ checks passed|ERROR SUMMARY|^MFU |^found:' "$kept/$name.txt" | tail -n 1)" ;;
    no) words="not run: no time left" ;;
    124 | 137) words="FAILED: not finished within $most s" ;;
    *) words="FAILED: exit status $rc: $(grep -v '^ *$' "$kept/$name.txt" | tail -n 1)" ;;
  esac
  say "$(printf '%-12s %4d s  %s' "$name" $((SECONDS - begin)) "$words")"
  [ "$rc" = 0 ]
}
selftest() {
  local rc=0
  part "$1" "$(left 10)" "$harness" selftest "${@:2}" --backend "$backend" || rc=1
  [ ! -e "$kept/$1.txt" ] || cp "$kept/$1.txt" "$out/"
  return $rc
}
sweep() {  # NAME SECONDS RANKS CONFIG OPTION...: 4 (too few rounds for verdicts) counts as passed
  # shellcheck disable=SC2086
  part "$1" "$2" sh -c '"$@"; rc=$?; [ $rc = 4 ] && exit 0; exit $rc' sh \
    "$mpirun" $ranks -np "$3" "$harness" sweep "$4" -o "$kept/$1.h5" --force "${@:5}"
}

machine() {
  cat "$kept/first.txt" "$kept/preparation.txt"
  timeout 30 nvidia-smi; timeout 30 nvidia-smi -q; timeout 30 nvidia-smi topo -m
  uname -a; nproc; free -g; df -h /dev/shm /tmp; ls -d /dev/nvidia* /proc/driver/nvidia/gpus/*
  ldconfig -p | grep -E 'libcuda|nvidia-ml|nccl|cudnn|cublas|cupti'
  [ ! -e "$module" ] || ldd "$module"
  "$python" -m pip list 2> /dev/null | grep -iE 'torch|nvidia|triton|cuda'
  cat COMMIT VERSION
}
pytorch() {  # NAME SECONDS OPTION...
  local script=bench/pytorch_step.py
  [ -e $script ] || script=share/bench/pytorch_step.py
  TORCHINDUCTOR_CACHE_DIR=$kept/inductor part "$1" "$2" env LD_LIBRARY_PATH="$libraries_of_python" "$python" $script \
    --device cuda --model "$model" --micro-batch "$micro_batch" --global-batch "$micro_batch" --precision bf16 \
    --variants compile "${@:3}"
}
has_torch() { [ "$backend" = cuda ] && timeout 60 "$python" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2> /dev/null; }

# Every layout and setting of NCCL must reach the same losses; NCCL's logs show its choices.
layouts() {
  local options=(--set baseline.global_batch_size=4 --set measure.steps=2 --only layout)
  if [ "$backend" = cuda ]; then
    options+=(nccl_algo=AllReduce:Tree nccl_proto=AllReduce:LL --set 'measure.deadlines={start: 90 s, step: 45 s}'
      --wrap "env NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV,NET,GRAPH,TUNING,REG NCCL_DEBUG_FILE=$kept/nccl.%p")
  fi
  sweep layouts 200 4 "$layouts" "${options[@]}" || return 1
  "$harness" show --format json "$kept/layouts.h5" > "$kept/layouts.json"
  cat "$kept"/nccl.* 2> /dev/null | grep -o '[A-Za-z]*: [0-9]* Bytes -> .*' | sort | uniq -c > "$out/nccl_calls.txt"
  if grep -E 'trains differently|not a finite number|not honoured: |"status": "(failed|dropped)"' "$kept/layouts.json" \
    > "$out/layouts.txt"; then
    say "layouts      a case failed or trains differently, or a setting was not honoured"
    return 1
  fi
}
memcheck() {
  local program own=() o
  program=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2> /dev/null)
  if [ "$backend" != cuda ] || [ -z "$program" ]; then say "memcheck        0 s  not run: needs a GPU and compute-sanitizer"; return 0; fi
  for o in fill convert initialize record gelu swiglu residual_add bias_add rope column_sum layer_norm rms_norm embedding \
    cross_entropy adamw unfused; do own+=(--only "$o"); done
  # Libraries cause API errors while they probe the driver, which are not ours: --report-api-errors no.
  part memcheck "$(left 10)" "$program" --tool memcheck --report-api-errors no --target-processes all --error-exitcode 9 \
    "$harness" selftest operations --fast "${own[@]}" --backend cuda
}
# Kills rank 1's worker in each timed block of one case. Only this case may fail, and it must name the rank.
killed() {
  local wrong=overlap_grad_reduce=false worker striker rc=0
  while sleep 0.1 && kill -0 $$ 2> /dev/null; do
    for worker in $(grep -lzxs "FIRST_LIGHT=$$" /proc/[0-9]*/environ); do
      grep -qzxFs "HARNESS_CASE=$wrong" "$worker" && grep -qzxFs HARNESS_RANK=1 "$worker" &&
        grep -qzs '^HARNESS_BLOCK=' "$worker" && kill -s KILL "$(basename "${worker%/environ}")" 2> /dev/null
    done
  done &
  striker=$!
  FIRST_LIGHT=$$ sweep killed 75 4 "$layouts" --only overlap_grad_reduce --set 'measure.deadlines={start: 30 s, step: 10 s}' || rc=1
  kill $striker
  [ $rc = 0 ] || return 1
  "$harness" show --format json "$kept/killed.h5" > "$kept/killed.json"
  if [ "$(grep -c '"status": "failed"' "$kept/killed.json")" != 1 ] || ! grep -q '"reason": ".*rank 1' "$kept/killed.json"; then
    say "killed       not exactly one case failed, or not because of rank 1"
    return 1
  fi
}
tokens_per_s() { grep -o '"tokens_per_second": *[0-9.eE+-]*' "$1" 2> /dev/null | sed -n '1s/.*: *//p'; }
# Compares PyTorch's step with the baseline before and after it.
compare() {
  "$harness" show --format json "$kept/speed.h5" > "$kept/speed.json"
  "$harness" show --format json "$kept/again.h5" > "$kept/again.json"
  awk -v a="$(tokens_per_s "$kept/speed.json")" -v b="$(tokens_per_s "$kept/again.json")" \
    -v p="$(tokens_per_s "$kept/pytorch.txt")" 'BEGIN {
      printf "tokens/s     harness %.0f, PyTorch %.0f, harness again %.0f", a, p, b
      if (p > 0 && b > 0) printf ": %.3f x PyTorch (goal 1.10)", (a + b) / 2 / p
      print ""}' | tee -a "$out/table2.txt"
  "$harness" show --breakdown "$kept/speed.h5" > "$out/speed.txt"
}

: > "$out/table$command.txt"
failed=0 pids=()
case $command in
  1)
    machine > "$out/machine.txt" 2>&1
    if has_torch; then pytorch compile "$(left 10)" --warmup 1 --steps 1 & pids+=($!); fi
    layouts & pids+=($!)
    memcheck & pids+=($!)
    selftest operations operations --fast & pids+=($!)
    selftest training reference & pids+=($!)
    for p in "${pids[@]}"; do wait "$p" || failed=1; done
    ;;
  2)
    size=()
    [ -z "$model" ] || size=(--set "model=$model" --set "baseline.micro_batch_size=$micro_batch" --set "baseline.global_batch_size=$micro_batch")
    # shellcheck disable=SC2086
    sweep speed 240 1 "$speed" ${size[@]+"${size[@]}"} $few || failed=1
    if has_torch; then pytorch pytorch 90 --warmup 20 --steps 30 --trace "$kept/pytorch_trace.json.gz" || failed=1; fi
    # shellcheck disable=SC2086
    sweep again 85 1 "$speed" ${size[@]+"${size[@]}"} $few --only attention=unfused --set measure.rounds=1 || failed=1
    compare
    killed || failed=1
    # shellcheck disable=SC2086
    part load 60 "$mpirun" $ranks -np 1 "$harness" doctor || failed=1
    # shellcheck disable=SC2086
    part calibrate 90 "$mpirun" $ranks -np 1 "$harness" calibrate --backend "$backend" --time-budget 45s -o "$out/here" || failed=1
    ;;
esac
exit $failed
