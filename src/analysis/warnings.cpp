#include "analysis/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"

namespace harness::analysis {

namespace {

void control(const Summary& summary, Warnings& warnings) {
  constexpr std::size_t max_named = 3;
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
  for (std::size_t i = 0; i < result.blocks.size() && i < result.losses.size(); ++i) {
    const store::ResultBlock& block = result.blocks[i];
    const std::vector<float>& values = result.losses[i];
    if (block.status != store::BlockStatus::ok || values.empty()) continue;
    const bool finite = std::ranges::all_of(values, [](float loss) { return std::isfinite(loss); });
    if (!finite) ++not_finite[block.case_index];
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
                    row.name, skipped, row.blocks * result.steps));
  }
}

void training(const store::Result& result, const Summary& summary, Warnings& warnings) {
  for (const CaseSummary& row : summary.cases) {
    if (row.trains_differently.empty()) continue;
    const std::string& variable = result.at(row).variable;
    warnings.push_back(
        fmt::format("{} trains differently: {}. Both should compute the same result, so one of them is wrong; do not "
                    "trust its time. Compare both with `harness selftest`, try another value of {}, and report it.",
                    row.name, row.trains_differently, variable.empty() ? "the variable" : variable));
  }
}

// Beyond a bandwidth of the links or the peak of the device.
std::string excess_of(const store::Result& result, const CaseSummary& row) {
  const Rates& rates = *row.rates;
  if (!rates.bus_bytes_per_s || !rates.limit_bytes_per_s) {
    return fmt::format("{:.1f} % of the peak ({})", 100 * row.mfu.value_or(0), result.peak_source);
  }
  const store::ResultPoint& point = *result.find_point(row.case_index);
  return fmt::format(
      "{:.4g} GB/s on the bus, but the links carry at most {:.4g} GB/s ({}). {} of {:.0f} bytes takes at least {:.4g} "
      "s; {:.4g} s were measured",
      *rates.bus_bytes_per_s / 1e9, *rates.limit_bytes_per_s / 1e9, point.limit_source, point.operation, point.bytes,
      point.bytes * point.bus_factor / *rates.limit_bytes_per_s, rates.operation_seconds);
}

void limits(const store::Result& result, const Summary& summary, Warnings& warnings) {
  for (const CaseSummary& row : summary.cases) {
    if (!row.rates || !row.rates->impossible) continue;
    warnings.push_back(
        fmt::format("impossible: {} reaches {}. Either the limit is stated too low, or something other than the "
                    "operation was timed: correct the number, or look at what the case changed.",
                    row.name, excess_of(result, row)));
  }
}

// A peak that is too low makes every MFU too high, those below 100 % too.
void peaks(const store::Result& result, const Summary& summary, Warnings& warnings) {
  std::vector<std::string> names;
  double highest = 0;
  for (const CaseSummary& row : summary.cases) {
    if (!above_peak(row) || (row.rates && row.rates->impossible)) continue;
    names.push_back(row.name);
    highest = std::max(highest, *row.mfu);
  }
  if (names.empty()) return;
  const char* remedy = result.peak_source.starts_with("measured")
                           ? "The machine was busier each time it was measured. Compare step times instead, or measure "
                             "again on a quiet machine with fewer threads than cores."
                           : "Correct peak_flops or the hardware file, or look for work that the case does not do.";
  warnings.push_back(
      fmt::format("above the peak: {:.1f} % of it in {} (marked ! in the table). The peak ({}) is too low, so no MFU "
                  "of this sweep can be trusted. {}",
                  100 * highest, join(names, ", "), result.peak_source, remedy));
}

// A step's time is the slowest rank's. Where ranks take turns at being slow, the steps add up to more than any rank's
// total, and only a large difference is news; less than the total they cannot be unless time was lost between them.
void totals(const store::Result& result, Warnings& warnings) {
  constexpr double lost = -0.02, turns = 0.1;
  int short_of = 0, beyond = 0;
  double max_lost = 0, max_beyond = 0;
  for (const FinishedBlock& block : finished_blocks(result)) {
    const double total = result.blocks[block.index].timed_total_s;
    if (!(total > 0)) continue;
    double sum = 0;
    for (const float seconds : result.timed_seconds(block.index)) sum += seconds;
    const double difference = sum / total - 1;
    if (difference < lost) ++short_of;
    if (difference > turns) ++beyond;
    max_lost = std::min(max_lost, difference);
    max_beyond = std::max(max_beyond, difference);
  }
  if (short_of > 0) {
    warnings.push_back(
        fmt::format("in {} the step times add up to less than the block took ({:.1f} % missing): time is lost between "
                    "steps, or a clock is coarse. With longer steps (a larger batch or model) it matters less.",
                    plural(short_of, "block"), -100 * max_lost));
  }
  if (beyond > 0) {
    warnings.push_back(
        fmt::format("in {} ranks take turns at being the slowest, so the step times add up to as much as {:.0f} % more "
                    "than the block took. Compare tokens/s over whole blocks, and look at rank_seconds.",
                    plural(beyond, "block"), 100 * max_beyond));
  }
}

// A block that ended well and has a reason is one whose first start failed for a cause outside of it.
void started_again(const store::Result& result, Warnings& warnings) {
  const auto blocks = std::ranges::count_if(result.blocks, [](const store::ResultBlock& block) {
    return block.status == store::BlockStatus::ok && !block.reason.empty();
  });
  if (blocks == 0) return;
  warnings.push_back(
      fmt::format("{} lost connections before the first step and counted only when started again (column reason of "
                  "/blocks). Another process may be probing the ports of these hosts.",
                  plural(static_cast<int>(blocks), "block")));
}

// Says which way the case differs, where an interval that reaches across a threshold proves that much; "" if it does
// not.
std::string proven_direction(const CaseSummary& row) {
  const Effect& effect = *row.effect;
  const char* per = row.another_training ? " per token" : "";
  if (effect.high < 1)
    return fmt::format("{} takes {:.3g} to {:.3g} % less time{}", row.name, 100 * (1 - effect.high),
                       100 * (1 - effect.low), per);
  if (effect.low > 1)
    return fmt::format("{} takes {:.3g} to {:.3g} % more time{}", row.name, 100 * (effect.low - 1),
                       100 * (effect.high - 1), per);
  return "";
}

// What to type for so many rounds in all, or for as few more as the file can take. `may_extend`: for more rounds of
// this file, not of another.
std::string how_to_get(int rounds, const store::Result& result, bool may_extend) {
  const int least = std::max(declared_rounds(result), rounds_over(result) + 1);
  if (!may_extend || std::max(rounds, least) > most_declared_rounds)
    return fmt::format("measure again with --rounds {}", rounds);
  if (result.state == store::RunState::complete)
    return fmt::format("`sweep --resume FILE --rounds {}` adds them to this file", std::max(rounds, least));
  const std::string later = fmt::format("; once it is complete, `sweep --resume FILE --rounds {}` adds more", rounds);
  return "`sweep --resume FILE` continues this file" + (rounds > declared_rounds(result) ? later : "");
}

void rounds(const store::Result& result, const Summary& summary, Warnings& warnings) {
  if (sweeps_sizes_alone(result)) return;  // their table has no verdicts
  constexpr std::size_t max_named = 6;
  constexpr int usual_rounds = 12;
  std::vector<std::string> unresolved, unpaired, directions;
  int needed = 0, done = 0, to_have_pairs = usual_rounds;
  bool may_extend = false;
  for (const CaseSummary& row : summary.cases) {
    if (row.blocks == 0 || store::is_reference(row.role) || timed_something_else(row.judgement)) continue;
    done = std::max(done, row.blocks);
    may_extend = may_extend || needs_rounds(row);
    if (row.judgement.reason == Reason::too_few_rounds) {
      unpaired.push_back(row.name);
      const int rounds_per_block = (rounds_over(result) + row.blocks - 1) / row.blocks;  // more than 1 with a weight
      to_have_pairs = std::max(to_have_pairs, usual_rounds * rounds_per_block);
    }
    if (!is_unresolved(row)) continue;
    unresolved.push_back(row.name);
    needed = std::max(needed, row.effect->rounds_needed);
    if (std::string direction = proven_direction(row); !direction.empty()) directions.push_back(std::move(direction));
  }
  if (!unpaired.empty()) {
    warnings.push_back(fmt::format(
        "no verdict on {}: a verdict needs {}, and about {} rounds to see small effects: {}.",
        join_first(unpaired, max_named),
        !summary.levels.empty()
            ? fmt::format("at least {} blocks of the case", least_level_rounds)
            : fmt::format("at least {} rounds in which the case and the baseline both finished in one session",
                          least_pairs),
        usual_rounds, how_to_get(to_have_pairs, result, may_extend)));
  }
  if (unresolved.empty()) return;
  const std::string rounds =
      done < result.rounds ? fmt::format("{} of {}", done, result.rounds) : std::to_string(result.rounds);
  const std::string open =
      fmt::format("{} unresolved after {} rounds: {}.", unresolved.size(), rounds, join_first(unresolved, max_named));
  if (needed >= max_rounds) {
    warnings.push_back(fmt::format(
        "{} More rounds will not resolve all of these: either an effect is close to the {:.3g} % threshold, or the "
        "machine is too noisy. Use longer blocks (measure.steps) or raise smallest_effect.",
        open, 100 * result.smallest_effect));
  } else {
    warnings.push_back(fmt::format("{} About {} rounds would settle {}, if scatter and effect stay as they are: {}.",
                                   open, needed, unresolved.size() == 1 ? "it" : "all of them",
                                   how_to_get(needed, result, may_extend)));
  }
  if (!directions.empty()) {
    warnings.push_back(fmt::format(
        "the direction is known at {:.3g} %: {}. Whether the change exceeds {}, which a verdict needs, is still open.",
        100 * result.confidence, join_first(directions, max_named), threshold_words(result.smallest_effect)));
  }
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
  struct Node {
    std::string host;
    std::int64_t threads = 0, cores = 0;
  };
  std::map<int, Node> nodes;
  for (const auto& rank : result.rank_table) {
    Node& node = nodes[rank.node];
    node.host = rank.host;
    node.threads += rank.threads;
    node.cores = std::max<std::int64_t>(node.cores, rank.cores);
  }
  int overfull = 0;
  Node worst;
  for (const auto& [number, node] : nodes) {
    if (node.cores <= 0 || node.threads <= node.cores) continue;
    ++overfull;
    if (node.threads > worst.threads) worst = node;
  }
  if (overfull == 0) return;
  warnings.push_back(
      fmt::format("{} of {} oversubscribed ({} runs {} threads on {} cores), so step times include scheduling delays. "
                  "Start fewer ranks per node or set fewer threads.",
                  overfull, nodes.size() == 1 ? "1 node is" : fmt::format("{} nodes are", nodes.size()), worst.host,
                  worst.threads, worst.cores));
}

// Which verdicts the throttled rounds decide.
std::string without_throttled_rounds(const store::Result& result, const Summary& summary) {
  if (std::ssize(summary.throttled_rounds) == result.rounds) return "No round is free of it";
  std::vector<std::string> changed;
  for (const CaseSummary& row : summary.cases) {
    if (!row.effect || !row.unthrottled || row.effect->verdict == row.unthrottled->verdict) continue;
    changed.push_back(fmt::format("{} is {} with them and {} without ({:+.1f} %)", row.name,
                                  name_of(row.effect->verdict), name_of(row.unthrottled->verdict),
                                  100 * (row.unthrottled->ratio - 1)));
  }
  return changed.empty() ? "Without them the verdicts are the same" : join(changed, "; ");
}

void throttling(const store::Result& result, const Summary& summary, Warnings& warnings) {
  if (summary.throttled_rounds.empty()) return;
  constexpr std::size_t max_listed = 20;
  std::vector<std::string> rounds;
  for (const std::int32_t round : summary.throttled_rounds) {
    if (rounds.size() < max_listed) rounds.push_back(std::to_string(round + 1));
  }
  if (rounds.size() < summary.throttled_rounds.size()) rounds.emplace_back("…");
  warnings.push_back(fmt::format(
      "clocks were throttled, or more than 5 % below the usual, in {} of {} rounds ({}); these rounds are counted. {}. "
      "Cool the GPUs or cap their clocks (nvidia-smi -lgc) and measure again.",
      summary.throttled_rounds.size(), result.rounds, join(rounds, ", "), without_throttled_rounds(result, summary)));
}

// Failures and warnings of the nodes, as doctor found them before the first round, each with a remedy.
void doctor_warnings(const store::Result& result, Warnings& warnings) {
  constexpr std::size_t most = 8;
  std::size_t listed = 0, more = 0;
  for (const store::ResultFinding& row : result.doctor.findings) {
    if (!row.is_of_nodes() || !(row.is_failure() || row.is_warning())) continue;
    if (listed == most) {
      ++more;
      continue;
    }
    ++listed;
    warnings.push_back(fmt::format("doctor, {} {} on {}: {}. What to do: {}", row.verdict, row.check, row.where,
                                   row.evidence, row.remedy));
  }
  if (more > 0) {
    warnings.push_back(
        fmt::format("doctor found {} more before the first round: `harness report` lists all of them", more));
  }
}

}  // namespace

void find_warnings(const store::Result& result, const Summary& summary, Warnings& warnings) {
  doctor_warnings(result, warnings);
  if (summary.predicted) return;  // all others are about machines and what was timed on them
  limits(result, summary, warnings);
  peaks(result, summary, warnings);
  control(summary, warnings);
  losses(result, warnings);
  skipped_updates(result, summary, warnings);
  training(result, summary, warnings);
  totals(result, warnings);
  started_again(result, warnings);
  rounds(result, summary, warnings);
  added_rounds(result, warnings);
  throttling(result, summary, warnings);
  level_warnings(result, summary, warnings);
  machine_warnings(result, summary, warnings);
  oversubscription(result, warnings);
}

}  // namespace harness::analysis
