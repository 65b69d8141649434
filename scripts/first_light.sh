#!/bin/bash
# Shows in two commands, of 4 and 7 minutes at most, what one GPU can show on a machine that has PyTorch and this bundle.
# The first asks whether the cuda backend is right: operations, training, memory errors, layouts on four ranks, and a
# doctor, all at once, while PyTorch compiles its step. The second measures, and has the device to itself: a step of
# harness, of PyTorch and of harness again, a sweep, a killed worker, a doctor under load, and, if there is time, a
# calibration. Both continue after a failure, and finished parts are kept whatever ends the script.
#
# usage: scripts/first_light.sh 1|2
# environment, all optional:
#   OUT=DIR       what is to be read: tables, and an archive of all reports (default first-light)
#   KEPT=DIR      where the parts work; command 2 finds here what command 1 compiled (default /tmp/harness-first-light)
#   LIMIT=N       seconds (default 230 for command 1, 400 for command 2)
#   BACKEND=cpu   a rehearsal without a GPU
# Exit status: 0 if every part passed, else 1.
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
command=${1:-}
case $command in
  1) limit=${LIMIT:-230} ;;
  2) limit=${LIMIT:-400} ;;
  *) sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p}' "$0" >&2; exit 1 ;;
esac
backend=${BACKEND:-cuda} out=${OUT:-first-light} kept=${KEPT:-/tmp/harness-first-light}
mkdir -p "$out" "$kept" && out=$(cd "$out" && pwd) && kept=$(cd "$kept" && pwd) && cd "$root" || exit 1
harness=${HARNESS:-$root/harness} mpirun=${MPIRUN:-$root/mpirun} python=${PYTHON:-python3}
[ -x "$mpirun" ] || mpirun=$(command -v mpirun)
ranks="--oversubscribe --bind-to none"
if [ "$(id -u)" = 0 ]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi

model=gpt3-1.3b micro_batch=8 steps="--warmup-steps 20 --steps 30 --roof-seconds 0.1"
if [ "$backend" = cuda ]; then
  memory=$(timeout 20 nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits | head -n 1)
  [ "${memory:-0}" -lt 120000 ] || micro_batch=16
  # Containers and virtual machines often have 64 MiB of shared memory and no loopback; NCCL needs both (gpu_check.sh).
  ip link set lo up
  mount -o remount,size=4g /dev/shm
else
  model=gpt3-125m micro_batch=1 steps="--warmup-steps 0 --steps 1 --roof-seconds 0.1"
fi 2> "$kept/preparation.txt"
export MODEL=$model MICRO_BATCH="$micro_batch $micro_batch"  # a second time untuned, if the first breaks the device
export BACKEND=$backend HARNESS=$harness MPIRUN=$mpirun PYTHON=$python

left() { echo $((limit - SECONDS - ${1:-0})); }
keep() { tar czf "$kept.tgz" --exclude=inductor -C "${kept%/*}" "${kept##*/}" && mv "$kept.tgz" "$out/kept$command.tgz"; }
(while sleep 15; do keep; done) > /dev/null 2>&1 &
keeper=$!
trap 'kill $keeper; keep' EXIT

# Runs a part for at most so many seconds and adds a line to the table.
part() {  # NAME SECONDS COMMAND...
  local name=$1 most=$2 begin=$SECONDS rc=0; shift 2
  [ "$most" -le "$(left 5)" ] || most=$(left 5)
  if [ "$most" -lt 5 ]; then
    rc=no
  else
    timeout -k 5 "$most" "$@" > "$kept/$name.txt" 2>&1 || rc=$?
  fi
  local words
  case $rc in 0) words=passed ;; no) words="not run: no time left" ;; 124 | 137) words="FAILED: not finished within $most s" ;; *) words="FAILED: exit status $rc" ;; esac
  printf '%-12s %4d s  %s\n' "$name" $((SECONDS - begin)) "$words" | tee -a "$out/table$command.txt"
  [ "$rc" = 0 ]
}
check() { scripts/gpu_check.sh -o "$out/$1.txt" --keep "$kept/$1" "${@:2}"; }
export -f check
export out kept
rows() { part "$1" "$2" env SECONDS_IN_ALL="$2" bash -c 'check "$@"' check "$1" "${@:3}"; }

machine() {
  timeout 30 nvidia-smi; timeout 30 nvidia-smi -q; timeout 30 nvidia-smi topo -m
  uname -a; nproc; free -g; df -h /dev/shm /tmp; ls -d /dev/nvidia* /proc/driver/nvidia/gpus/*
  ldconfig -p | grep -E 'libcuda|nvidia-ml|nccl|cudnn|cublas|cupti'
  sh scripts/cuda_libraries.sh bin/libharness_cuda.so
  "$python" -m pip list 2> /dev/null | grep -iE 'torch|nvidia|triton|cuda'
  cat COMMIT VERSION
}
pytorch_compiles() {
  TORCHINDUCTOR_CACHE_DIR=$kept/speed/inductor part compile "$(left 10)" "$python" bench/pytorch_step.py \
    --device "$backend" --model "$model" --micro-batch "$micro_batch" --global-batch "$micro_batch" --precision bf16 \
    --warmup 1 --steps 1 --variants compile
}
# The ranks of one GPU look like different hosts to NCCL: it says in its logs what it chose.
layouts() {
  local config=configs/check-layouts.yaml log=() set=(--set baseline.global_batch_size=4 --set measure.steps=2)
  if [ "$backend" = cuda ]; then
    export NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1
    log=(--wrap "env NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV,NET,GRAPH,TUNING,REG NCCL_DEBUG_FILE=$kept/nccl.%p")
    set+=(--set 'measure.deadlines={start: 90 s, step: 45 s}' --only layout nccl_algo=AllReduce:Tree nccl_proto=AllReduce:LL)
  else
    config=$kept/check-layouts.yaml
    sed -e "s/^backend: .*/backend: $backend/" -e '/nccl_/d' -e '/^hardware: none/d' -e 's/, share_gpus: true//' \
      configs/check-layouts.yaml > "$config"
    set+=(--only layout)
  fi
  # shellcheck disable=SC2086
  part layouts 200 "$mpirun" $ranks -np 4 "$harness" sweep "$config" -o "$kept/layouts.h5" "${set[@]}" "${log[@]}"
  local rc=$?
  "$harness" show --format json "$kept/layouts.h5" > "$kept/layouts.json"
  if grep -E 'trains differently|not a finite number|not honoured: ' "$kept/layouts.json"; then
    echo "layouts      a case trains differently, or a setting was not honoured" | tee -a "$out/table$command.txt"
    rc=1
  fi
  cat "$kept"/nccl.* 2> /dev/null | grep -o '[A-Za-z]*: [0-9]* Bytes -> .*' | sort | uniq -c > "$kept/nccl_calls.txt"
  return $rc
}

failed=0
case $command in
  1)
    machine > "$out/machine.txt" 2>&1
    rm -f "$kept/layouts.h5"
    pids=()
    [ "$backend" = cuda ] && { pytorch_compiles & pids+=($!); }
    layouts & pids+=($!)
    rows memcheck "$(left 10)" memcheck & pids+=($!)
    rows operations "$(left 10)" environment operations & pids+=($!)
    rows training "$(left 10)" reference & pids+=($!)
    part doctor 60 "$harness" doctor --stages static & pids+=($!)
    for p in "${pids[@]}"; do wait "$p" || failed=1; done
    ;;
  2)
    ROW_SECONDS=130 rows speed 200 performance pytorch || failed=1
    # shellcheck disable=SC2086
    part again 45 "$harness" selftest performance --backend "$backend" --model $model --precision bf16 \
      --micro-batch $micro_batch $steps --tuning "$kept/speed/tuning.txt" --tuning-seconds 5 --json "$kept/again.json" || failed=1
    if [ "$backend" = cuda ]; then
      # shellcheck disable=SC2086
      part sweep 140 "$mpirun" $ranks -np 1 "$harness" sweep configs/first-light.yaml -o "$out/first-light.h5" || failed=1
    fi
    rows killed 75 killed || failed=1
    # shellcheck disable=SC2086
    part load 60 "$mpirun" $ranks -np 1 "$harness" doctor || failed=1
    # shellcheck disable=SC2086
    part calibrate 90 "$mpirun" $ranks -np 1 "$harness" calibrate --backend "$backend" --time-budget 45s -o "$out/here" || failed=1
    ;;
esac
exit $failed
