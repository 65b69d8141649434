# The three sides of compare_gpu.sh, which includes this file. find_SIDE says whether a side is there, or why not in
# `reason`, and sets side_variants. run_SIDE SECONDS VARIANT MICRO_BATCH runs `warmup` and `steps` steps, keeps its output
# in $log, and sets median, fastest, slowest (seconds per step) and tokens_per_second, or `reason`.
# shellcheck shell=bash disable=SC2154,SC2034

libraries_of_python=${LD_LIBRARY_PATH:-}  # find_harness changes it; PyTorch finds its own

value() { sed -n "s/.*\"$1\": *\"\{0,1\}\([^\",}]*\).*/\1/p" "$2" | tail -n 1; }  # of the last such key in JSON
version() {  # SIDE TEXT
  sed -i "/^$1\t/d" "$versions"
  printf '%s\t%s\n' "$1" "$2" >> "$versions"
}
failure() {  # STATUS SECONDS: what went wrong, by exit status and the last words
  case $1 in
    124 | 137) reason="not finished within $2 s" ;;
    *) reason="exit status $1: $(grep -v '^ *$' "$log" | tail -n 1 | cut -c 1-200)" ;;
  esac
  return 1
}
take_json() {  # FILE PREFIX: the times of harness's or PyTorch's JSON
  median=$(value "$2" "$1") fastest=$(value fastest_seconds "$1") slowest=$(value slowest_seconds "$1")
  tokens_per_second=$(value tokens_per_second "$1")
  [ -n "$median" ] && [ -n "$tokens_per_second" ]
}

# ---- harness ---------------------------------------------------------------------------------------------------------------
find_harness() {
  local file
  side_variants=("fused, tuned")
  for file in "${HARNESS:-}" "$root/build/release/bin/harness" "$root/harness" "$root/bin/harness"; do
    if [ -n "$file" ] && [ -x "$file" ]; then harness=$file; break; fi
  done
  [ -n "${harness:-}" ] || { reason="the binary was not found; run \`make\`, or set HARNESS to its path"; return 1; }
  local module=${harness%/*}/libharness_cuda.so libraries
  if [ -e "$module" ]; then
    libraries=$(PYTHON=${PYTHON:-python3} sh "$root/scripts/cuda_libraries.sh" "$module")
    [ -z "$libraries" ] || export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}${LD_LIBRARY_PATH:+:}$libraries"
  fi
  version harness "$("$harness" --version 2> /dev/null | head -n 1)"
}
run_harness() {
  local rc=0 json=${log%.txt}.json
  limited "$1" "$harness" selftest performance --backend cuda --model "$model" --sequence "$sequence" --micro-batch "$3" \
    --precision bf16 --warmup-steps "$warmup" --steps "$steps" --roof-seconds 0.1 --tuning "$keep/tuning.txt" \
    --json "$json" > "$log" 2>&1 || rc=$?
  # The times are written before a step is profiled: a run that failed later has them.
  if [ ! -e "$json" ] || ! take_json "$json" median_seconds; then failure $rc "$1"; return 1; fi
  [ $rc = 0 ] || { failure $rc "$1"; note harness "timed, but $reason"; reason=""; }
  version harness "$(head -n 1 "$log")$(sed -n \
    's/^\(cuda_runtime\|cublaslt\|cudnn\|nccl\|device\): \(.*\)/, \1 \2/p' "$log" | tr -d '\n')"
  return 0
}

# ---- PyTorch ---------------------------------------------------------------------------------------------------------------
limited_python() { local limit=$1; shift; limited "$limit" env LD_LIBRARY_PATH="$libraries_of_python" "$python" "$@"; }
find_pytorch() {
  python=${PYTHON:-python3}
  IFS=, read -ra side_variants <<< "$variants"
  limited_python 120 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' > /dev/null 2>&1 ||
    { reason="$python has no PyTorch with CUDA; set PYTHON to one that has"; return 1; }
  export TORCHINDUCTOR_CACHE_DIR=$keep/inductor  # each variant compiles once
}
run_pytorch() {
  local rc=0 json=${log%.txt}.json
  limited_python "$1" "$root/bench/pytorch_step.py" --device cuda --model "$model" --micro-batch "$3" \
    --global-batch "$3" --precision bf16 --warmup "$warmup" --steps "$steps" --variants "$2" > "$json" 2> "$log" || rc=$?
  if [ $rc != 0 ] || ! take_json "$json" step_seconds; then failure $rc "$1"; return 1; fi
  version pytorch "torch $(value torch "$json"), CUDA $(value cuda "$json"), cuDNN $(value cudnn "$json"), attention \
$(value attention "$json")"
}

# ---- llm.c -----------------------------------------------------------------------------------------------------------------
find_llmc() {
  side_variants=("-r 0 -ge 2" "defaults")
  case $model in
    gpt3-125m) llmc_model=gpt3:c768 ;;
    gpt3-350m) llmc_model=gpt3:c1024 ;;
    gpt3-760m) llmc_model=gpt3:c1536 ;;
    gpt3-1.3b) llmc_model=gpt3:c2048 ;;
    gpt3-2.7b) llmc_model=gpt3:c2560 ;;
    gpt3-6.7b) llmc_model=gpt3:c4096 ;;
    *) reason="it does not know the model $model"; return 1 ;;
  esac
  if [ ! -x "$llmc/train_gpt2cu" ] || [ ! -e "$llmc/tokens.bin" ]; then
    reason="there is no $llmc/train_gpt2cu with its tokens.bin; bench/build_llmc.sh builds them"
    return 1
  fi
  llmc=$(cd "$llmc" && pwd)
  llmc_libraries=$(PYTHON=${PYTHON:-python3} sh "$root/scripts/cuda_libraries.sh" "$llmc/train_gpt2cu")
  version llmc "$(cat "$llmc/about" 2> /dev/null || echo unknown)"
}
# Neither validates nor samples between the timed steps. It prints the time of every step, by events on the device.
run_llmc() {
  local rc=0 options=()
  [ "$2" = defaults ] || read -ra options <<< "$2"
  limited "$1" env LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}:$llmc_libraries" "$llmc/train_gpt2cu" -i "$llmc/tokens.bin" \
    -j "$llmc/tokens.bin" -e "$llmc_model" -b "$3" -t "$sequence" -x $((warmup + steps)) -c 0.1 -l 1e-4 -v 1000000 -m 1 \
    -s 0 ${options[@]+"${options[@]}"} > "$log" 2>&1 || rc=$?
  if [ $rc != 0 ]; then failure $rc "$1"; return 1; fi
  local times
  times=$(sed -n 's/^step .*| *\([0-9.]*\) ms |.*/\1/p' "$log" | tail -n "+$((warmup + 1))" | sort -g)
  if [ "$(grep -c . <<< "$times")" != "$steps" ]; then
    reason="it printed the times of $(grep -c '^step .* ms |' "$log") steps; expected $((warmup + steps))"
    return 1
  fi
  read -r median fastest slowest tokens_per_second < <(awk -v tokens=$(($3 * sequence)) '{t[NR] = $1 / 1e3} END {
    m = NR % 2 ? t[(NR + 1) / 2] : (t[NR / 2] + t[NR / 2 + 1]) / 2
    printf "%.6f %.6f %.6f %.1f\n", m, t[1], t[NR], tokens / m}' <<< "$times")
}
