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

# Find the fastest variant of PyTorch once. The rounds then time the fastest stock variant and, if it is faster, the one
# that uses oneDNN for its products.
torch() { "$python" bench/pytorch_step.py "${flags[@]}" "$@" 2>> "$folder/torch.log"; }
declare -A chosen
for precision in fp32 bf16; do
  torch --precision $precision > "$folder/first-$precision.json" || { cat "$folder/torch.log" >&2; exit 1; }
  chosen[$precision]=$("$python" -c 'import json, sys; d = json.load(sys.stdin)
print(",".join(sorted({d["variant"], d["stock_variant"]})))' < "$folder/first-$precision.json")
  echo "compare: PyTorch's fastest for $precision: ${chosen[$precision]}" >&2
done

for ((round = 1; round <= rounds; round++)); do
  echo "compare: round $round of $rounds" >&2
  # Exit status 4: too few rounds for a verdict. The times are there all the same.
  rc=0
  ./harness sweep bench/step.yaml "${sets[@]}" -o "$folder/harness-$round.h5" > "$folder/sweep.log" 2>&1 || rc=$?
  [ $rc = 0 ] || [ $rc = 4 ] || { cat "$folder/sweep.log" >&2; exit 1; }
  ./harness show --format json "$folder/harness-$round.h5" > "$folder/harness-$round.json"
  for precision in fp32 bf16; do
    torch --precision $precision --variants "${chosen[$precision]}" > "$folder/torch-$precision-$round.json"
  done
done

"$python" - "$folder" "$rounds" << 'END'
import json, pathlib, statistics, sys
folder, rounds = pathlib.Path(sys.argv[1]), range(1, int(sys.argv[2]) + 1)
ours, theirs, stock, names = {"fp32": [], "bf16": []}, {}, {}, {}
for r in rounds:
    for case in json.loads((folder / f"harness-{r}.json").read_text())["cases"]:
        precision = case["settings"]["precision"]
        if case["step_seconds"]:
            ours[precision].append(case["step_seconds"])
        else:
            sys.exit(f"compare: the harness did not finish {case['name']}: {case['status']} {case['reason']}")
for p in ours:
    runs = [json.loads((folder / f"torch-{p}-{r}.json").read_text()) for r in rounds]
    theirs[p] = statistics.median(x["step_seconds"] for x in runs)
    stock[p] = statistics.median(x["stock_step_seconds"] for x in runs)
    names[p] = (runs[-1]["variant"], runs[-1]["stock_variant"])
    ours[p] = statistics.median(ours[p])
print("precision  harness s/step  PyTorch s/step  harness / PyTorch   fastest variant of PyTorch")
for p in ours:
    print(f"{p:9}  {ours[p]:14.4f}  {stock[p]:14.4f}  {ours[p] / stock[p]:17.3f}   {names[p][1]}")
    if names[p][0] != names[p][1]:
        print(f"{'':9}  {'':14}  {theirs[p]:14.4f}  {ours[p] / theirs[p]:17.3f}   {names[p][0]} (see bench/README.md)")
print(f"harness: bf16 is {ours['fp32'] / ours['bf16']:.2f} x as fast as fp32")
END
