# The rows of gpu_check.sh, which includes this file. A function row_ID gets its time limit in seconds, writes its report
# to $log and one line to $detail, and returns 0: passed, 1: failed, 2: not run. Other files go to $folder.
# shellcheck shell=bash disable=SC2154

# Open MPI refuses to run as root unless told to. In a container, root is often the only user.
if [ "$(id -u)" = 0 ]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
oversubscribe=""
if [ -n "$mpirun" ] && "$mpirun" --version 2> /dev/null | grep -q -e 'Open MPI' -e OpenRTE; then
  oversubscribe="--oversubscribe --bind-to none"
fi
# Ranks that share a GPU look like different hosts to NCCL and communicate over the loopback interface.
if [ "$backend" = cuda ]; then export NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1; fi

# The meaning of an exit status other than 0, for the table.
status_words() {  # STATUS LIMIT
  case $1 in
    124 | 137) echo "not finished within $2 s" ;;
    3) echo "nothing ran" ;;
    *) echo "exit status $1" ;;
  esac
}
selftest() {  # LIMIT arguments...
  local limit=$1 rc=0 part=$log.part; shift
  limited "$limit" "$harness" selftest "$@" --backend "$backend" > "$part" 2> "$log.err" || rc=$?
  cat "$part" >> "$log"
  detail=$(grep -E '^[0-9]+ checks passed' "$part" | tail -n 1)
  [ -n "$detail" ] || detail="$(grep -c ': passed' "$part") checks passed until then, $(grep -c ': FAILED' "$part") failed"
  [ $rc = 0 ] && return 0
  cat "$log.err" >> "$log"
  detail="$(status_words $rc "$limit"); $detail"
  return 1
}

# ---- what the other rows are to be read with -----------------------------------------------------------------------------
row_environment() {
  local rc=0 lost="" smi="" torch=""
  {
    cat "$folder/first.txt"
    uname -a
    echo "LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}"
    df -Pm /dev/shm || true
    echo "loopback: $(cat /sys/class/net/lo/operstate /sys/class/net/lo/flags 2> /dev/null | tr '\n' ' ')"
    if [ -n "$can_ask_gpu" ]; then
      limited 20 nvidia-smi
      limited 20 nvidia-smi -q -d CLOCK,POWER,PERFORMANCE,TEMPERATURE,ECC
      smi=$(ask_gpu clocks.max.sm,power.limit,temperature.gpu |
        awk -F ', ' 'NR == 1 {printf "%s MHz, %s W, %s C", $1, $2, $3}')
    fi
    limited_python $(($1 < 60 ? $1 : 60)) -c '
import torch
cudnn = torch.backends.cudnn.version()
print("torch", torch.__version__, "with CUDA", torch.version.cuda, "and cuDNN", cudnn, "on", torch.cuda.device_count(), "GPUs")' \
      > "$folder/torch.version" && torch=$(cat "$folder/torch.version")
    echo "${torch:-$python has no torch}"
    if [ -e "$module" ]; then ldd "$module"; fi
  } >> "$log" 2>&1
  lost=$(awk '/=> not found/ {print $1}' "$log" | sort -u | tr '\n' ' ')
  detail="${smi:+at most $smi; }${torch:-no torch}"
  if [ "$backend" = cuda ] && [ -n "$lost" ]; then detail="libraries that are not found: $lost"; return 1; fi
}

# ---- how fast ------------------------------------------------------------------------------------------------------------
# For 1.3B in bf16, 18 bytes per parameter and about 3.3 GB per sequence, so that PyTorch's step fits beside nothing
# else. If the first does not run, the second is tried, untuned: a trial of the tuner may have broken the device.
model=${MODEL:-} micro_batches=${MICRO_BATCH:-}
if [ -z "$model" ]; then
  if [ "$gpu_memory" -ge 120000 ]; then model=gpt3-1.3b micro_batches=${micro_batches:-16 16}
  elif [ "$gpu_memory" -ge 75000 ]; then model=gpt3-1.3b micro_batches=${micro_batches:-8 8}
  elif [ "$gpu_memory" -ge 38000 ]; then model=gpt3-1.3b micro_batches=${micro_batches:-2 2}
  else model=gpt3-125m micro_batches=${micro_batches:-2 2}; fi
fi
micro_batches=${micro_batches:-1}
row_performance() {
  local steps=() begin=$SECONDS left batch failed="" rc
  [ "$backend" = cuda ] || steps=(--warmup-steps 1 --steps 2 --roof-seconds 0.1)
  rm -f "$folder"/performance.*json*  # of an earlier run that was kept
  for batch in $micro_batches; do
    left=$(($1 - (SECONDS - begin)))
    if [ "$left" -lt 5 ]; then break; fi
    rc=0
    selftest "$left" performance --model "$model" --micro-batch "$batch" --precision bf16 --tuning "$folder/tuning.txt" \
      ${steps[@]+"${steps[@]}"} -o "$folder/performance" --json "$folder/performance.json" || rc=$?
    if grep -q '"tokens_per_second": *[1-9]' "$folder/performance.jsonl" 2> /dev/null; then  # whatever came after it
      [ $rc = 0 ] || failed="$detail${failed:+; $failed}"
      detail=$(grep -o 'MFU [^;]*\|^step: .*tokens/s' "$log.part" | tr '\n' ';' | sed 's/;$//; s/;/; /g')
      detail="micro-batch $batch: $detail${failed:+; $failed}"
      return $rc
    fi
    failed="${failed:+$failed; }micro-batch $batch: $detail"
    steps+=(--tuning-seconds 0)  # the library's first proposals are safe, and there is less time now
  done
  detail=$failed
  return 1
}

number() { sed -n "s/.*\"$1\": *\([0-9.eE+-]*\).*/\1/p" "$2" | tail -n 1; }  # the last value of a key in JSON lines
fastest() { grep -o '"tokens_per_second": *[0-9.eE+-]*' "$1" | sort -t : -k 2 -g | sed -n '$s/.*: *//p'; }
row_pytorch() {
  local script=$root/bench/pytorch_step.py ours theirs="" rc=0 ratio cut="" micro_batch batch begin=$SECONDS left
  [ "$backend" = cuda ] || { detail="for GPUs only; on CPUs, use bench/compare_pytorch.sh"; return 2; }
  [ -e "$script" ] || script=$root/share/bench/pytorch_step.py
  [ -e "$script" ] || { detail="bench/pytorch_step.py was not found"; return 2; }
  limited_python $(($1 < 120 ? $1 : 120)) -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2> /dev/null ||
    { detail="$python has no PyTorch with CUDA; set PYTHON to one that has"; return 2; }
  ours=$(number tokens_per_second "$folder/performance.jsonl" 2> /dev/null)
  micro_batch=$(number micro_batch "$folder/performance.jsonl" 2> /dev/null)
  [ -n "$ours" ] || { detail="the step of harness was not timed (row performance)"; return 2; }
  [ -z "$keep" ] || export TORCHINDUCTOR_CACHE_DIR=$folder/inductor  # a second run compiles nothing
  # If the batch does not fit in PyTorch, try half of it: the comparison is by tokens/s. A line of JSON per variant comes
  # when the variant ends.
  : > "$folder/pytorch.jsonl"
  batch=$micro_batch
  while :; do
    rc=0 left=$(($1 - (SECONDS - begin)))
    if [ "$left" -lt 5 ]; then rc=124; break; fi
    limited_python "$left" "$script" --device cuda --model "$model" --micro-batch "$batch" \
      --global-batch "$batch" --precision bf16 --warmup 20 --steps 30 --variants "${PYTORCH_VARIANTS:-compile}" \
      > /dev/null 2> "$log.part" || rc=$?
    cat "$log.part" >> "$log"
    grep '^{.*"tokens_per_second"' "$log.part" >> "$folder/pytorch.jsonl"
    if [ $rc = 0 ] || [ $rc = 124 ] || [ "$batch" -lt 2 ]; then break; fi
    batch=$((batch / 2))
  done
  theirs=$(fastest "$folder/pytorch.jsonl")
  if [ -z "$theirs" ]; then detail="the step of PyTorch: $(status_words $rc "$1")"; return 1; fi
  [ $rc = 0 ] || cut="; other variants: $(status_words $rc "$1")"
  ratio=$(awk -v a="$ours" -v b="$theirs" 'BEGIN {printf "%.3f", a / b}')
  detail=$(awk -v a="$ours" -v b="$theirs" -v r="$ratio" -v n="$micro_batch" -v m="$batch" \
    'BEGIN {printf "harness %.0f (micro-batch %d), PyTorch %.0f tokens/s (%d): %s x (goal 1.10, fails below 1)", a, n, b, m, r}')$cut
  awk -v r="$ratio" 'BEGIN {exit !(r >= 1)}'
}

# ---- is it right -----------------------------------------------------------------------------------------------------------
row_operations() { selftest "$1" operations --fast; }
row_reference() { selftest "$1" reference equality; }
row_large() {
  [ "$backend" = cuda ] || { detail="for GPUs only: the oracle is the cpu backend"; return 2; }
  selftest "$1" operations
}

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
  rm -f "$folder/$name.h5"  # of an earlier run that was kept
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
# Ranks that look like different hosts talk through NCCL's proxy, whose pool takes 34.2 MB of /dev/shm for every rank and
# communicator (ncclProxyOpsPool of NCCL 2.28): 550 MB for four ranks in TP 2 x PP 2. And the loopback interface must be up.
shm_free() { df -Pm "${SHM:-/dev/shm}" 2> /dev/null | awk 'NR == 2 {print $4}'; }
need_shm() {
  [ "$backend" = cuda ] || return 0
  [ -n "${SHM:-}" ] || ip link set lo up 2> /dev/null || true
  local free; free=$(shm_free)
  if [ "${free:-0}" -lt 700 ] && [ -z "${SHM:-}" ]; then
    mkdir -p /dev/shm 2> /dev/null || true
    mount -o remount,size=4g /dev/shm 2> /dev/null || mount -t tmpfs -o size=4g tmpfs /dev/shm 2> /dev/null || true
    free=$(shm_free)
  fi
  [ "${free:-0}" -ge 700 ] && return 0
  detail="/dev/shm has ${free:-0} MiB free; NCCL needs 34 MiB for each rank and communicator, 700 MiB here (docker run --shm-size 2g)"
  return 1
}

row_layouts() {
  need_mpirun && need_shm || return 2
  local rc=0 bad only=()
  # Each of the 13 cases starts four processes three times. With less time, the layouts alone.
  [ "$1" -ge 300 ] || only=(--only layout)
  sweep "$1" layouts ${only[@]+"${only[@]}"} || rc=$?
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
  detail="$bad cases train alike${only[0]:+ (only the layouts: $1 s were left)}"
}

memory_used() { ask_gpu memory.used | awk '{s += $1} END {if (NR) print s}'; }  # nothing: unknown
# Sends a signal to rank 1's worker of each timed block of a case, once it runs. Until it is killed.
strike() {  # SIGNAL CASE
  local worker
  while sleep 0.1; do
    for worker in $(grep -lzxs "GPU_CHECK=$$" /proc/[0-9]*/environ); do
      grep -qzxFs "HARNESS_CASE=$2" "$worker" && grep -qzxFs HARNESS_RANK=1 "$worker" && grep -qzs '^HARNESS_BLOCK=' "$worker" &&
        kill -s "$1" "$(basename "${worker%/environ}")" 2> /dev/null
    done
  done
}
# A worker of one case is killed or frozen. Only this case may fail, in time, and name the rank. The GPU's memory must be
# free again.
fault() {  # LIMIT NAME SIGNAL
  need_mpirun && need_shm || return 2
  local rc=0 wrong=overlap_grad_reduce=false before="" after="" begin took others striker
  [ "$backend" = cuda ] && [ -n "$can_ask_gpu" ] && before=$(memory_used)
  begin=$SECONDS
  strike "$3" "$wrong" &
  striker=$!
  GPU_CHECK=$$ sweep "$1" "$2" --only overlap_grad_reduce \
    --set 'measure.deadlines={start: 30 s, step: 10 s}' || rc=$?
  kill "$striker"
  wait "$striker" 2> /dev/null || true
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
  [ -n "$before" ] || return 0
  # The driver takes a moment to release the memory of a dead process.
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    after=$(memory_used)
    [ "${after:-999999}" -le $((before + 64)) ] && { detail="$detail; GPU memory $before MiB before, $after MiB after"; return 0; }
    sleep 1
  done
  detail="GPU memory: $before MiB before, ${after:-unknown} MiB ten seconds later"
  return 1
}
row_killed() { fault "$1" killed KILL; }
row_absent() { fault "$1" absent STOP; }

# Errors that libraries get from the driver while they probe it are not ours: --report-api-errors no.
sanitizer() {  # LIMIT TOOL selftest-arguments...
  local limit=$1 tool=$2 program rc=0; shift 2
  [ "$backend" = cuda ] || { detail="the $backend backend has no device memory"; return 2; }
  program=$(first_of "$(command -v compute-sanitizer)" /usr/local/cuda/bin/compute-sanitizer)
  [ -n "$program" ] || { detail="compute-sanitizer was not found"; return 2; }
  local options=()
  [ "$tool" != memcheck ] || options=(--report-api-errors no)
  limited "$limit" "$program" --tool "$tool" ${options[@]+"${options[@]}"} --target-processes all --error-exitcode 9 \
    "$harness" selftest "$@" --backend cuda >> "$log" 2>&1 || rc=$?
  detail=$(grep -o 'ERROR SUMMARY: .*\|RACECHECK SUMMARY: .*' "$log" | tail -n 1)
  [ $rc = 0 ] && return 0
  detail="$(status_words $rc "$limit")${detail:+; $detail}"
  return 1
}
own_kernels=()
for o in fill convert initialize record gelu swiglu residual_add bias_add rope column_sum layer_norm rms_norm embedding \
  cross_entropy adamw attention_merge unfused; do own_kernels+=(--only "$o"); done
row_memcheck() { sanitizer "$1" memcheck operations --fast "${own_kernels[@]}"; }
row_racecheck() { sanitizer "$1" racecheck operations --fast "${own_kernels[@]}"; }
