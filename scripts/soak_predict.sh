#!/bin/bash
# Does a calibration predict what this machine then measures? Calibrates, measures the sweep of the demo, calibrates
# again, and predicts the sweep with both calibrations. The mean of the two predictions of each case must be within
# 15 % of its measured step, and two cases whose measured intervals do not overlap must be predicted in their order.
# Needs a machine that does nothing else.
# usage: scripts/soak_predict.sh [percent, default 15] [rounds, default 12] [seconds of a calibration, default 60]
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/soak_sweep.sh
percent=${1:-15} rounds=${2:-12} seconds=${3:-60}
config=configs/laptop.yaml ranks=2
predict() { # before or after
  run ./harness sweep $config --backend sim --ranks $ranks --hardware "$folder/$1-hardware.yaml" \
    --set calibration="$folder/$1-calibration.yaml" -o "$folder/$1.h5"
}
on_ranks $ranks calibrate $config -o "$folder/before" --time-budget "${seconds}s"
on_ranks $ranks sweep $config --rounds "$rounds" --set measure.until=rounds --set measure.time_budget=1h -o "$folder/measured.h5"
on_ranks $ranks calibrate $config -o "$folder/after" --time-budget "${seconds}s"
predict before
predict after
for file in before after measured; do
  columns "$folder/$file.h5" case step_seconds effect_low effect_high > "$folder/$file"
done
awk -F'|' -v percent="$percent" '
  FILENAME ~ /before$/ { before[$1] = $2; next }
  FILENAME ~ /after$/ { after[$1] = $2; next }
  !($1 in before) || !($2 > 0) { next } # the copy of the baseline is not predicted
  {
    if ($1 == "baseline") { $3 = $4 = 1 }
    name[++n] = $1; measured[n] = $2; low[n] = $3; high[n] = $4
    predicted[n] = sqrt(before[$1] * after[$1])
    error = 100 * (predicted[n] / $2 - 1)
    printf "soak: %-50s measured %8.2f ms, predicted %8.2f ms (before %.2f, after %.2f): %+.1f %%\n",
      $1, 1e3 * $2, 1e3 * predicted[n], 1e3 * before[$1], 1e3 * after[$1], error
    if (error > percent || error < -percent) { ++off }
  }
  END {
    for (i = 1; i <= n; ++i) for (j = 1; j <= n; ++j) {
      if (low[i] == "" || high[j] == "" || !(high[j] < low[i])) continue # not proven that i is slower than j
      ++ordered
      if (predicted[i] > predicted[j]) continue
      ++wrong
      print "soak: " name[i] " is measured slower than " name[j] ", but predicted faster"
    }
    printf "soak: %d of %d cases are off by more than %s %%; %d of %d ordered pairs are predicted the other way\n",
      off, n, percent, wrong, ordered
    exit (n < 2 || off > 0 || wrong > 0)
  }' "$folder/before" "$folder/after" "$folder/measured"
