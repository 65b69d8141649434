#include "analysis/warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>

#include "analysis/pairing.h"
#include "base/text.h"

namespace harness {
namespace {

using Warnings = std::vector<std::string>;

void control(const Summary& summary, Warnings& warnings) {
  if (!summary.unreliable) return;
  warnings.push_back(fmt::format(
      "unreliable: baseline_again is the baseline and came out {:.1f} % {} [{:.1f} %, {:.1f} %]: something changed "
      "between blocks that no case changed. Look for other jobs on the nodes and for throttling, then measure again.",
      100 * std::abs(summary.control->ratio - 1), name_of(summary.control->verdict), 100 * (summary.control->low - 1),
      100 * (summary.control->high - 1)));
}

void losses(const Result& result, Warnings& warnings) {
  const auto variable = std::find(result.variables.begin(), result.variables.end(), "repeat_batch");
  const auto repeat = static_cast<std::size_t>(variable - result.variables.begin());
  std::map<int, int> not_finite, not_falling;  // case -> blocks
  for (std::size_t i = 0; i < result.blocks.size() && i < result.losses.size(); ++i) {
    const int of = result.blocks[i].case_index;
    if (result.blocks[i].status != BlockStatus::ok || result.losses[i].empty()) continue;
    const auto& values = result.losses[i];
    if (!std::all_of(values.begin(), values.end(), [](float loss) { return std::isfinite(loss); })) {
      ++not_finite[of];
      continue;
    }
    const auto& settings = result.cases[static_cast<std::size_t>(of)].settings;
    const bool same_batch = repeat < settings.size() && settings[repeat] == "true";
    if (same_batch && values.size() > 1 && !(values.back() < values.front())) ++not_falling[of];
  }
  for (const auto& [of, blocks] : not_finite) {
    warnings.push_back(fmt::format(
        "{}: the loss is not a finite number in {} of its blocks, so these steps did not train and their time says "
        "little. Try precision: fp32; if it stays, it is a fault worth reporting.",
        result.cases[static_cast<std::size_t>(of)].name, blocks));
  }
  for (const auto& [of, blocks] : not_falling) {
    warnings.push_back(fmt::format(
        "{}: trained on one repeated batch, and the loss does not fall in {} of its blocks. Take more steps; if it "
        "stays, it is a fault worth reporting.",
        result.cases[static_cast<std::size_t>(of)].name, blocks));
  }
}

// How far two cases' last losses may differ that compute the same in another order: a few steps multiply what rounding
// leaves.
double loss_tolerance(std::string_view precision) {
  return precision == "bf16" || precision == "tf32" ? 2e-2 : 1e-3;
}

// Every variable but these leaves what is computed as it is; a case that differs in one of them may train differently.
constexpr std::array<std::string_view, 3> training_variables = {"precision", "global_batch_size", "repeat_batch"};

void training(const Result& result, const Summary& summary, Warnings& warnings) {
  const int baseline = find_case(result, "baseline");
  if (baseline < 0) return;
  const auto setting = [&](int of, std::string_view variable) -> std::string_view {
    const auto& settings = result.cases[static_cast<std::size_t>(of)].settings;
    const auto at = static_cast<std::size_t>(std::ranges::find(result.variables, variable) - result.variables.begin());
    return at < settings.size() ? std::string_view(settings[at]) : std::string_view();
  };
  const auto& reference = summary.cases[static_cast<std::size_t>(baseline)];
  if (!std::isfinite(reference.last_loss) || reference.last_loss == 0) return;
  const double allowed = loss_tolerance(setting(baseline, "precision"));
  for (const CaseSummary& one : summary.cases) {
    if (one.case_index == baseline || !std::isfinite(one.last_loss)) continue;
    const bool alike = std::ranges::all_of(
        training_variables, [&](std::string_view v) { return setting(one.case_index, v) == setting(baseline, v); });
    const double off = std::abs(one.last_loss / reference.last_loss - 1);
    if (!alike || off <= allowed) continue;
    warnings.push_back(fmt::format(
        "{} trains differently: its last loss is {:.6g}, the baseline's {:.6g} ({:.2g} % apart, {:.2g} % is allowed), "
        "and it computes the same in another way, so one of the two computes wrongly and its time says nothing. "
        "Compare "
        "both with `harness check`, try another value of {}, and report it.",
        one.name, one.last_loss, reference.last_loss, 100 * off, 100 * allowed,
        result.cases[static_cast<std::size_t>(one.case_index)].variable.empty()
            ? std::string("the variable")
            : result.cases[static_cast<std::size_t>(one.case_index)].variable));
  }
}

// The answer to a time in which nothing could have been done.
void limits(const Result& result, const Summary& summary, Warnings& warnings) {
  for (const CaseSummary& one : summary.cases) {
    if (!one.rates || !one.rates->impossible) continue;
    const ResultPoint* point = find_point(result, one.case_index);
    const bool on_bus = one.rates->bus_bytes_per_s && one.rates->limit_bytes_per_s;
    const std::string what =
        on_bus ? fmt::format(
                     "{:.4g} GB/s on the bus, and the links carry at most {:.4g} GB/s ({}): {:.4g} s is the least "
                     "that {} of {:.0f} bytes can take, {:.4g} s were measured",
                     *one.rates->bus_bytes_per_s / 1e9, *one.rates->limit_bytes_per_s / 1e9, point->limit_source,
                     point->bytes * point->bus_factor / *one.rates->limit_bytes_per_s, point->operation, point->bytes,
                     one.rates->operation_seconds)
               : fmt::format("{:.1f} % of the peak ({})", 100 * one.mfu.value_or(0), result.peak_source);
    warnings.push_back(fmt::format(
        "impossible: {} comes out at {}. Either the limit is stated too low, or what was timed is not the operation: "
        "correct the number, or look at what the case changed.",
        one.name, what));
  }
}

// A step's time is the slowest rank's. Where ranks take turns at being slow, the steps add up to more than any rank's
// total, and only a large difference is news; less than the total they cannot be unless time was lost between them.
void totals(const Result& result, Warnings& warnings) {
  constexpr double lost = -0.02, turns = 0.1;
  int short_of = 0, beyond = 0;
  double most_lost = 0, furthest = 0;
  for (std::size_t i = 0; i < result.blocks.size() && i < result.step_seconds.size(); ++i) {
    if (!block_median(result, i) || !(result.blocks[i].timed_total_s > 0)) continue;
    double sum = 0;
    for (auto s = static_cast<std::size_t>(result.warmup_steps); s < result.step_seconds[i].size(); ++s) {
      sum += result.step_seconds[i][s];
    }
    const double difference = sum / result.blocks[i].timed_total_s - 1;
    short_of += difference < lost ? 1 : 0;
    beyond += difference > turns ? 1 : 0;
    most_lost = std::min(most_lost, difference);
    furthest = std::max(furthest, difference);
  }
  if (short_of > 0) {
    warnings.push_back(fmt::format(
        "in {} blocks the steps' times do not add up to the time around all of them ({:.1f} % missing): time is lost "
        "between steps or a clock is coarse. Longer steps (a larger batch or model) make it matter less.",
        short_of, -100 * most_lost));
  }
  if (beyond > 0) {
    warnings.push_back(fmt::format(
        "in {} blocks the slowest rank changes so much from step to step that the steps' times add up to up to {:.0f} "
        "% "
        "more than the block took: ranks wait in turn. Compare tokens/s over whole blocks, and see rank_seconds.",
        beyond, 100 * furthest));
  }
}

void rounds(const Result& result, const Summary& summary, Warnings& warnings) {
  std::vector<std::string> unresolved, unpaired;
  int needed = 0;
  for (const auto& one : summary.cases) {
    if (one.blocks == 0 || one.name == "baseline" || (one.rates && one.rates->impossible)) continue;
    if (!one.effect || one.effect->verdict == Verdict::none) unpaired.push_back(one.name);
    if (one.effect && one.effect->verdict == Verdict::unresolved) {
      unresolved.push_back(one.name);
      needed = std::max(needed, one.effect->rounds_needed);
    }
  }
  if (!unpaired.empty()) {
    warnings.push_back(fmt::format(
        "no verdict on {}: it takes at least 2 rounds in which the case and the baseline both finished in one "
        "session, and some 12 to see small effects. Measure with --rounds 12 or go on with --resume.",
        join(unpaired, ", ")));
  }
  if (unresolved.empty()) return;
  if (needed < 1000) {
    warnings.push_back(
        fmt::format("{} unresolved after {} rounds: {}. About {} rounds would settle {}, if scatter and "
                    "effect stay as they are: measure anew with --rounds {}.",
                    unresolved.size(), result.rounds, join(unresolved, ", "), needed,
                    unresolved.size() == 1 ? "it" : "all of them", needed));
  } else {
    warnings.push_back(
        fmt::format("{} unresolved after {} rounds: {}. No practical number of rounds would settle all of "
                    "them: an effect lies too close to the smallest one that matters ({:.3g} %), or the "
                    "machine is too restless. Take longer blocks (measure.steps) or another "
                    "smallest_effect.",
                    unresolved.size(), result.rounds, join(unresolved, ", "), 100 * result.smallest_effect));
  }
}

void oversubscription(const Result& result, Warnings& warnings) {
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
      fmt::format("{} of {} nodes are oversubscribed ({} runs {} threads on {} cores): ranks wait for one another's "
                  "cores, and step "
                  "times tell of the scheduler too. Start fewer ranks per node or set fewer threads.",
                  overfull, nodes.size(), worst.host, worst.threads, worst.cores));
}

void throttling(const Result& result, const Summary& summary, Warnings& warnings) {
  if (summary.throttled_rounds.empty()) return;
  std::vector<std::string> rounds, changed;
  for (const std::int32_t round : summary.throttled_rounds) rounds.push_back(std::to_string(round + 1));
  for (const CaseSummary& one : summary.cases) {
    if (!one.effect || !one.unthrottled || one.effect->verdict == one.unthrottled->verdict) continue;
    changed.push_back(fmt::format("{} is {} with them and {} without ({:+.1f} %)", one.name,
                                  name_of(one.effect->verdict), name_of(one.unthrottled->verdict),
                                  100 * (one.unthrottled->ratio - 1)));
  }
  constexpr std::size_t most = 20;
  if (rounds.size() > most) rounds.resize(most), rounds.emplace_back("…");
  warnings.push_back(
      fmt::format("clocks were throttled, or more than 5 % below the usual, in {} of {} rounds ({}); they are counted. "
                  "{}. Cool the "
                  "GPUs or cap their clocks (nvidia-smi -lgc) and measure again.",
                  summary.throttled_rounds.size(), result.rounds, join(rounds, ", "),
                  static_cast<std::int32_t>(summary.throttled_rounds.size()) == result.rounds
                      ? "No round is without"
                      : (changed.empty() ? "Without them the verdicts are the same" : join(changed, "; "))));
}

}  // namespace

std::vector<std::string> find_warnings(const Result& result, const Summary& summary) {
  Warnings warnings;
  control(summary, warnings);
  losses(result, warnings);
  limits(result, summary, warnings);
  training(result, summary, warnings);
  totals(result, warnings);
  rounds(result, summary, warnings);
  throttling(result, summary, warnings);
  oversubscription(result, warnings);
  return warnings;
}

}  // namespace harness
