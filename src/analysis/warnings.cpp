#include "analysis/summary.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>

#include "base/text.h"
#include "base/units.h"

namespace harness::analysis {

namespace {

constexpr std::size_t max_named = 6;

void control(const Summary& summary, Warnings& warnings) {
  std::vector<std::string> found;
  for (const CaseSummary& row : summary.cases) {
    if (row.role != store::CaseRole::control || !row.effect || !moved(row.effect->verdict)) continue;
    const std::size_t size = row.name.find(" at ");
    found.push_back(fmt::format("{:.1f} % {} [{:.1f} %, {:.1f} %]{}", 100 * std::abs(row.effect->ratio - 1),
                                name_of(row.effect->verdict), 100 * (row.effect->low - 1), 100 * (row.effect->high - 1),
                                size == std::string::npos ? "" : row.name.substr(size)));
  }
  if (found.empty()) return;
  warnings.push_back(
      fmt::format("unreliable: baseline_again repeats the baseline and came out {}, so something other than the cases "
                  "changed between blocks. Look for other jobs on the nodes and for throttling, then measure again.",
                  join_first(found, max_named)));
}

void losses(const store::Result& result, Warnings& warnings) {
  std::map<std::int32_t, int> not_finite;  // case -> blocks
  for (const std::size_t i : good_blocks(result, result.losses.size())) {
    const bool finite = std::ranges::all_of(result.losses[i], [](float loss) { return std::isfinite(loss); });
    if (!finite) ++not_finite[result.blocks[i].case_index];
  }
  for (const auto& [case_index, blocks] : not_finite) {
    warnings.push_back(
        fmt::format("{}: the loss is not a finite number in {} of its blocks. These steps did not train, so do not "
                    "rely on their time. Try precision: fp32; if the loss stays so, please report it.",
                    result.case_at(case_index).name, blocks));
  }
}

// A step without its update is shorter than the others.
void skipped_updates(const store::Result& result, const Summary& summary, Warnings& warnings) {
  for (const CaseSummary& row : summary.cases) {
    int skipped = 0;
    for (const FinishedBlock& block : finished_blocks(result, row.case_index))
      skipped += result.blocks[block.index].skipped_steps;
    if (skipped == 0) continue;
    warnings.push_back(
        fmt::format("{}: {} of {} timed steps were skipped by an overflow: their time lacks the update. With more "
                    "measure.warmup_steps the loss scale settles before the first timed step.",
                    short_name(row.name), skipped, row.blocks * result.steps));
  }
}

void training(const store::Result& result, const Summary& summary, Warnings& warnings) {
  for (const CaseSummary& row : summary.cases) {
    if (row.trains_differently.empty()) continue;
    const std::string& variable = result.at(row).variable;
    warnings.push_back(
        fmt::format("{} trains differently: {}. Both should compute the same result, so one of them is wrong; do not "
                    "trust its time. Compare both with `harness selftest`, try another value of {}, and report it.",
                    short_name(row.name), row.trains_differently, variable.empty() ? "the variable" : variable));
  }
}

void limits(const store::Result& result, const Summary& summary, Warnings& warnings) {
  for (const CaseSummary& row : summary.cases) {
    if (!row.rates || !row.rates->impossible) continue;
    const auto &bus = row.rates->bus_bytes_per_s, &limit = row.rates->limit_bytes_per_s;
    const std::string excess =
        bus && limit ? fmt::format("{} on the bus, but the links carry at most {} ({})", show_bandwidth(*bus),
                                   show_bandwidth(*limit), result.find_point(row.case_index)->limit_source)
                     : fmt::format("{:.1f} % of the peak ({})", 100 * row.mfu.value_or(0), result.peak_source);
    warnings.push_back(
        fmt::format("impossible: {} reaches {}. Either the limit is stated too low, or something other than the "
                    "operation was timed: correct the number, or look at what the case changed.",
                    short_name(row.name), excess));
  }
}

// A peak that is too low makes every MFU too high, even those below 100 %.
void peaks(const store::Result& result, const Summary& summary, Warnings& warnings) {
  std::vector<std::string> names;
  double highest = 0;
  for (const CaseSummary& row : summary.cases) {
    if (!above_peak(row) || (row.rates && row.rates->impossible)) continue;
    names.push_back(short_name(row.name));
    highest = std::max(highest, *row.mfu);
  }
  if (names.empty()) return;
  warnings.push_back(fmt::format(
      "above the peak: {:.1f} % of it in {} (marked ! in the table). The peak ({}) is too low, so no MFU of "
      "this sweep can be trusted: compare step times, correct peak_flops or the hardware file, or measure "
      "again on a quiet machine.",
      100 * highest, join(names, ", "), result.peak_source));
}

// A block's steps add up to less than its total only if time was lost between them.
void totals(const store::Result& result, Warnings& warnings) {
  constexpr double lost = -0.02;
  int blocks = 0;
  double most = 0;
  for (const FinishedBlock& block : finished_blocks(result)) {
    const std::span<const float> steps = result.timed_seconds(block.index);
    const double total = result.blocks[block.index].timed_total_s;
    const double difference = std::accumulate(steps.begin(), steps.end(), 0.0) / total - 1;
    if (!(total > 0) || !(difference < lost)) continue;
    ++blocks;
    most = std::min(most, difference);
  }
  if (blocks == 0) return;
  warnings.push_back(
      fmt::format("in {} the step times add up to less than the block took ({:.1f} % missing): time is lost between "
                  "steps, or a clock is coarse. With longer steps (a larger batch or model) it matters less.",
                  plural(blocks, "block"), -100 * most));
}

// Says how to get `rounds` rounds in all, or the fewest more that the file can take. `may_extend`: this file can take
// more rounds; otherwise suggests a new one.
std::string how_to_get(int rounds, const store::Result& result, bool may_extend) {
  const int total = std::max({rounds, declared_rounds(result), rounds_over(result) + 1});
  if (!may_extend || total > most_declared_rounds) return fmt::format("measure again with --rounds {}", rounds);
  if (result.state != store::RunState::complete) return "`sweep --resume FILE` continues this file";
  return fmt::format("`sweep --resume FILE --rounds {}` adds them to this file", total);
}

// Fewer blocks than a verdict needs.
void too_few_rounds(const store::Result& result, const Summary& summary, bool may_extend, Warnings& warnings) {
  constexpr int usual_rounds = 12;
  std::vector<std::string> names;
  int wanted = usual_rounds;
  for (const CaseSummary& row : summary.cases) {
    if (row.blocks == 0 || row.judgement.reason != Reason::too_few_rounds) continue;
    names.push_back(short_name(row.name));
    const int rounds_per_block = (rounds_over(result) + row.blocks - 1) / row.blocks;  // more than 1 if blocks failed
    wanted = std::max(wanted, usual_rounds * rounds_per_block);
  }
  if (names.empty()) return;
  warnings.push_back(fmt::format(
      "no verdict on {}: a verdict needs at least {} rounds in which the case and the baseline finished, and "
      "about {} rounds to see small effects: {}.",
      join_first(names, max_named), summary.levels.empty() ? least_pairs : least_level_rounds, usual_rounds,
      how_to_get(wanted, result, may_extend)));
}

void unresolved(const store::Result& result, const Summary& summary, bool may_extend, Warnings& warnings) {
  std::vector<std::string> open, directions;
  int needed = 0;
  for (const CaseSummary& row : summary.cases) {
    if (row.blocks == 0 || !is_unresolved(row)) continue;
    open.push_back(short_name(row.name));
    needed = std::max(needed, row.effect->rounds_needed);
    if (row.effect->high < 1 || row.effect->low > 1)
      directions.push_back(fmt::format("{} takes {} time{}", short_name(row.name),
                                       row.effect->high < 1 ? "less" : "more",
                                       row.another_training ? " per token" : ""));
  }
  if (open.empty()) return;
  const std::string remedy =
      needed >= max_rounds
          ? "More rounds will not resolve all of these: use longer blocks (measure.steps) or raise smallest_effect."
          : fmt::format("About {} rounds would settle all of them, if scatter and effect stay as they are: {}.", needed,
                        how_to_get(needed, result, may_extend));
  warnings.push_back(fmt::format("{} unresolved after {} rounds: {}. {}", open.size(), rounds_over(result),
                                 join_first(open, max_named), remedy));
  if (directions.empty()) return;
  warnings.push_back(fmt::format(
      "the direction is known at {:.6g} %: {}. Whether the change exceeds {}, which a verdict needs, is still open.",
      100 * result.confidence, join_first(directions, max_named), threshold_words(result.smallest_effect)));
}

void rounds(const store::Result& result, const Summary& summary, Warnings& warnings) {
  if (sweeps_sizes_alone(result)) return;  // their table has no verdicts
  const bool may_extend = std::ranges::any_of(summary.cases, needs_rounds);
  too_few_rounds(result, summary, may_extend, warnings);
  unresolved(result, summary, may_extend, warnings);
}

void added_rounds(const store::Result& result, Warnings& warnings) {
  if (result.extended.empty()) return;
  warnings.push_back(
      fmt::format("rounds were added after the results of round {} had been seen. Of sweeps in which nothing differs "
                  "and that are extended like this, up to {:.3g} % show a false verdict, instead of {:.3g} %. Declare "
                  "enough rounds before the first result (measure.until: settled).",
                  result.extended, 100 * error_bound(result), 100 * (1 - result.confidence)));
}

void oversubscription(const store::Result& result, Warnings& warnings) {
  std::map<std::string, std::int64_t> threads;  // by host
  int overfull = 0;
  std::string worst;
  for (const store::ResultRank& rank : result.rank_table) threads[rank.host] += rank.threads;
  for (const store::ResultRank& rank : result.rank_table) {
    if (rank.local_rank != 0 || rank.cores <= 0 || threads[rank.host] <= rank.cores) continue;
    ++overfull;
    if (worst.empty()) worst = fmt::format("{} runs {} threads on {} cores", rank.host, threads[rank.host], rank.cores);
  }
  if (overfull == 0) return;
  warnings.push_back(
      fmt::format("oversubscribed nodes: {} ({}). Step times include scheduling delays: start fewer ranks per node or "
                  "set fewer threads.",
                  overfull, worst));
}

void throttling(const store::Result& result, const Summary& summary, Warnings& warnings) {
  constexpr std::size_t max_listed = 20;
  if (summary.throttled_rounds.empty()) return;
  std::vector<std::string> rounds;
  for (const std::int32_t round : summary.throttled_rounds) rounds.push_back(std::to_string(round + 1));
  const int measured = std::max(rounds_over(result), summary.throttled_rounds.back() + 1);  // the last may be open
  warnings.push_back(
      fmt::format("clocks were throttled, or more than 5 % below the usual, in {} of {} rounds ({}); these rounds are "
                  "counted. Cool "
                  "the GPUs or cap their clocks (nvidia-smi -lgc) and measure again.",
                  rounds.size(), measured, join_first(rounds, max_listed)));
}

// doctor's failures and warnings about the nodes, from before the first round, each with a remedy.
void doctor_warnings(const store::Result& result, Warnings& warnings) {
  constexpr std::size_t most = 8;
  std::size_t found = 0;
  for (const store::ResultFinding& row : result.doctor.findings) {
    if (!row.is_of_nodes() || !(row.is_failure() || row.is_warning())) continue;
    if (++found > most) continue;
    warnings.push_back(fmt::format("doctor, {} {} on {}: {}. What to do: {}", row.verdict, row.check, row.where,
                                   row.evidence, row.remedy));
  }
  if (found <= most) return;
  warnings.push_back(
      fmt::format("doctor found {} more before the first round: `harness show FILE --format json` lists all of them",
                  found - most));
}

}  // namespace

void find_warnings(const store::Result& result, const Summary& summary, Warnings& warnings) {
  doctor_warnings(result, warnings);
  if (summary.predicted) return;  // all others concern machines and measured times
  limits(result, summary, warnings);
  peaks(result, summary, warnings);
  control(summary, warnings);
  losses(result, warnings);
  skipped_updates(result, summary, warnings);
  training(result, summary, warnings);
  totals(result, warnings);
  rounds(result, summary, warnings);
  added_rounds(result, warnings);
  throttling(result, summary, warnings);
  level_warnings(result, summary, warnings);
  machine_warnings(result, summary, warnings);
  oversubscription(result, warnings);
}

}  // namespace harness::analysis
