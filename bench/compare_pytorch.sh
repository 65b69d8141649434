#!/bin/bash
# Compares the step with the same step in PyTorch on this machine: alternately, ROUNDS times, on one rank with THREADS
# threads, in fp32 and bf16. Prints the ratio of the medians. See bench/README.md.
#   PYTHON=/path/to/python   one that has torch (default python3)
#   ROUNDS=3 STEPS=5 THREADS=1
#   MODEL="layers 6 hidden 512 heads 8 sequence 512 vocab 8192"   BATCH=4 (global = micro)
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3} rounds=${ROUNDS:-3} steps=${STEPS:-5} threads=${THREADS:-1} batch=${BATCH:-4}
model=${MODEL:-layers 6 hidden 512 heads 8 sequence 512 vocab 8192}
if ! "$python" -c 'import torch' 2> /dev/null; then
  echo "compare: $python has no torch; set PYTHON to one that has" >&2
  exit 1
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
read -ra words <<< "$model"
sets=(--set "baseline.threads=$threads" --set "baseline.global_batch_size=$batch" --set "baseline.micro_batch_size=$batch"
  --set "measure.steps=$steps")
flags=(--threads "$threads" --global-batch "$batch" --micro-batch "$batch" --steps "$steps" --warmup 2)
for ((i = 0; i < ${#words[@]}; i += 2)); do
  sets+=(--set "model.${words[i]}=${words[i + 1]}")
  flags+=("--${words[i]}" "${words[i + 1]}")
done

torch() {
  "$python" bench/pytorch_step.py "${flags[@]}" "$@" 2>> "$folder/torch.log" || { cat "$folder/torch.log" >&2; exit 1; }
}
variant_of() { "$python" -c 'import json, sys; print(json.load(sys.stdin)["variant"])' < "$1"; }
declare -A fastest  # variant, found once
for precision in fp32 bf16; do
  torch --precision $precision > "$folder/first.json"
  fastest[$precision]=$(variant_of "$folder/first.json")
done

for ((round = 1; round <= rounds; round++)); do
  echo "compare: round $round of $rounds" >&2
  # Exit status 4: too few rounds for a verdict. The times are there all the same.
  rc=0
  ./harness sweep bench/step.yaml "${sets[@]}" -o "$folder/harness-$round.h5" > "$folder/sweep.log" 2>&1 || rc=$?
  [ $rc = 0 ] || [ $rc = 4 ] || { cat "$folder/sweep.log" >&2; exit 1; }
  ./harness show --format json "$folder/harness-$round.h5" > "$folder/harness-$round.json" || [ $? = 4 ]
  for precision in fp32 bf16; do
    torch --precision $precision --variants "${fastest[$precision]}" > "$folder/torch-$precision-$round.json"
  done
done

"$python" - "$folder" "$rounds" << 'END'
import json, pathlib, statistics, sys
folder, rounds = pathlib.Path(sys.argv[1]), range(1, int(sys.argv[2]) + 1)
ours = {"fp32": [], "bf16": []}
for r in rounds:
    for case in json.loads((folder / f"harness-{r}.json").read_text())["cases"]:
        if not case["step_seconds"]:
            sys.exit(f"compare: the harness did not finish {case['name']}: {case['status']} {case['reason']}")
        ours[case["settings"]["precision"]].append(case["step_seconds"])
print("precision  harness s/step  PyTorch s/step  harness / PyTorch   fastest variant of PyTorch")
for p, seconds in ours.items():
    runs = [json.loads((folder / f"torch-{p}-{r}.json").read_text()) for r in rounds]
    mine, theirs = statistics.median(seconds), statistics.median(x["step_seconds"] for x in runs)
    print(f"{p:9}  {mine:14.4f}  {theirs:14.4f}  {mine / theirs:17.3f}   {runs[-1]['variant']}")
END
