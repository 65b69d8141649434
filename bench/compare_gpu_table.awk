# The table and the JSON of compare_gpu.sh, from its files: notes and versions (SIDE, TEXT), and runs (ROUND, SIDE, VARIANT,
# MICRO_BATCH, STATUS, MEDIAN, FASTEST, SLOWEST, TOKENS_PER_SECOND, SECONDS, REASON), with tabs between. A side's step time
# is the median over its runs in the rounds of their median steps; a ratio is the median over the rounds of the ratios
# within a round, so that what drifts from round to round does not count.
BEGIN {
  FS = "\t"
  count = split("harness pytorch llmc", sides, " ")
  title["harness"] = "harness"; title["pytorch"] = "PyTorch"; title["llmc"] = "llm.c"
}
kind == "note" { say(($1 in title ? title[$1] ": " : "") $2) }
kind == "version" { version[$1] = $2 }
kind == "run" {
  n_runs++
  runs = runs sprintf("%s\n    {\"round\": %d, \"side\": %s, \"variant\": %s, \"micro_batch\": %d, \"status\": %s, ", \
    comma(n_runs), $1, quoted($2), quoted($3), $4, quoted($5))
  runs = runs sprintf("\"step_seconds\": %s, \"fastest_seconds\": %s, \"slowest_seconds\": %s, ", known($6), known($7), \
    known($8))
  runs = runs sprintf("\"tokens_per_second\": %s, \"run_seconds\": %d, \"reason\": %s}", known($9), $10, quoted($11))
  which = $1 == 0 ? $3 ", micro-batch " $4 : "round " $1
  if ($5 != "ok") { say(title[$2] ": " which ": " $5 ": " $11); next }
  if ($1 == 0) next
  variant[$2] = $3; batch[$2] = $4
  i = ++ok[$2]
  median[$2, i] = $6; tokens[$2, $1] = $9; all_tokens[$2, i] = $9
  if (i == 1 || $7 < fastest[$2]) fastest[$2] = $7
  if (i == 1 || $8 > slowest[$2]) slowest[$2] = $8
  if ($1 > last) last = $1
}
END {
  printf "%s, sequence %d, bf16; %d + %d steps, %d rounds\n%s; %s\n\n", model, sequence, warmup, steps, rounds, device, date
  printf "%-8s %-18s %11s %8s %17s %9s %14s %5s\n", "side", "variant", "micro-batch", "ms/step", "fastest - slowest", \
    "tokens/s", "harness / side", "runs"
  for (s = 1; s <= count; s++) {
    side = sides[s]
    if (!ok[side]) continue
    for (i = 1; i <= ok[side]; i++) { a[i] = median[side, i]; b[i] = all_tokens[side, i] }
    step = middle(a, ok[side]); rate = middle(b, ok[side])
    pairs = 0
    for (r = 1; r <= last; r++) {
      if (("harness", r) in tokens && (side, r) in tokens) ratio[++pairs] = tokens["harness", r] / tokens[side, r]
    }
    center = pairs ? middle(ratio, pairs) : 0  # sorts
    printf "%-8s %-18s %11d %8.1f %8.1f - %6.1f %9.0f %14s %5d\n", title[side], variant[side], batch[side], \
      1e3 * step, 1e3 * fastest[side], 1e3 * slowest[side], rate, \
      side != "harness" && pairs ? sprintf("%.3f", center) : "", ok[side]
    results = results sprintf("%s\n    {\"side\": %s, \"variant\": %s, \"micro_batch\": %d, \"runs\": %d, ", \
      results == "" ? "" : ", ", quoted(side), quoted(variant[side]), batch[side], ok[side])
    results = results sprintf("\"step_seconds\": %.6f, \"tokens_per_second\": %.1f, ", step, rate)
    results = results sprintf("\"harness_over_side\": %s, \"lowest_ratio\": %s, \"highest_ratio\": %s}", \
      pairs ? sprintf("%.4f", center) : "null", pairs ? sprintf("%.4f", ratio[1]) : "null", \
      pairs ? sprintf("%.4f", ratio[pairs]) : "null")
    if (side != "harness" && pairs > 1) {
      spread = spread sprintf("harness / %s, round by round: %.3f to %.3f\n", title[side], ratio[1], ratio[pairs])
    }
  }
  printf "\n%s", spread
  for (s = 1; s <= count; s++) {
    side = sides[s]
    if (!(side in version)) continue
    printf "%s: %s\n", title[side], version[side]
    json_versions = json_versions (json_versions == "" ? "" : ", ") quoted(side) ": " quoted(version[side])
  }
  for (i = 1; i <= n_notes; i++) print notes[i]
  printf "{\"model\": %s, \"sequence\": %d, \"precision\": \"bf16\",\n", quoted(model), sequence > json
  printf "  \"warmup_steps\": %d, \"steps\": %d, \"rounds\": %d,\n", warmup, steps, rounds > json
  printf "  \"device\": %s, \"date\": %s,\n", quoted(device), quoted(date) > json
  printf "  \"versions\": {%s},\n  \"results\": [%s],\n", json_versions, results > json
  printf "  \"runs\": [%s],\n  \"notes\": [%s]}\n", runs, json_notes > json
}
function comma(n) { return n > 1 ? ", " : "" }
function known(x) { return x + 0 > 0 ? x : "null" }
function quoted(text) {
  gsub(/\\/, "\\\\", text); gsub(/"/, "\\\"", text); gsub(/[\001-\037]/, " ", text)
  return "\"" text "\""
}
function say(text) {
  notes[++n_notes] = text
  json_notes = json_notes comma(n_notes) quoted(text)
}
function middle(list, n,   i, j, x) {  # the median; sorts the list
  for (i = 2; i <= n; i++) {
    x = list[i]
    for (j = i - 1; j >= 1 && list[j] > x; j--) list[j + 1] = list[j]
    list[j + 1] = x
  }
  return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
}
