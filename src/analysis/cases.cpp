#include "analysis/cases.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/median.h"
#include "base/text.h"
#include "config/registry.h"
#include "machine/conditions.h"

namespace harness::analysis {
namespace {

// Returns the name unchanged if it is of another variable, or from a file of another version.
std::string short_change(const std::string& change) {
  const std::size_t equals = std::min(change.find('='), change.size());
  const std::string variable = change.substr(0, equals), value = change.substr(std::min(equals + 1, change.size()));
  if (value == "true" || value == "false") return variable + (value == "true" ? " on" : " off");
  if (variable != "layout" && variable != "env") return change;
  config::Settings settings;
  try {
    config::find_variable(variable)->parse(settings, value);
  } catch (const Error&) {
    return change;
  }
  if (variable == "layout") {
    const std::string label = program::label_of(settings.layout);
    return label.empty() ? change : label;
  }
  std::vector<std::string> entries;
  for (const auto& [name, text] : settings.env) entries.push_back(fmt::format("{}={}", name, text));
  return join(entries, " ");
}

}  // namespace

std::string short_name(const std::string& name) {
  constexpr std::string_view between = " + ";
  std::vector<std::string> changes = split_text(name, between);
  for (std::string& change : changes) change = short_change(change);
  return join(changes, between);
}

bool shares_processes(const store::Result& result) {
  std::set<std::int32_t> processes;
  return !std::ranges::all_of(result.blocks, [&](const store::ResultBlock& block) {
    return block.process < 0 || processes.insert(block.process).second;
  });
}

bool will_still_run(const store::Result& result, const store::ResultBlock& block) {
  return block.status == store::BlockStatus::pending && store::may_run(result.at(block).status);
}

std::int32_t first_open_round(const store::Result& result) {
  std::int32_t first = result.rounds;
  for (const store::ResultBlock& block : result.blocks) {
    if (will_still_run(result, block)) first = std::min(first, block.round);
  }
  return first;
}

std::vector<FinishedBlock> finished_blocks(const store::Result& result, std::optional<std::int32_t> case_index) {
  std::vector<FinishedBlock> finished;
  for (std::size_t i = 0; i < result.blocks.size(); ++i) {
    const store::ResultBlock& block = result.blocks[i];
    if (case_index && block.case_index != *case_index) continue;
    if (const auto seconds = block_median(result, i)) {
      finished.push_back(
          {i, block.case_index, block.round, block.session, block.start_unix_s + block.setup_s, *seconds});
    }
  }
  return finished;
}

std::optional<double> block_median(const store::Result& result, std::size_t block) {
  if (result.blocks[block].status != store::BlockStatus::ok) return {};
  std::vector<double> timed;
  for (const float seconds : result.timed_seconds(block)) {
    if (std::isfinite(seconds) && seconds > 0) timed.push_back(seconds);
  }
  if (timed.empty()) return {};
  return median(timed);
}

std::vector<std::size_t> good_blocks(const store::Result& result, std::size_t rows) {
  std::vector<std::size_t> good;
  for (std::size_t i = 0; i < std::min(result.blocks.size(), rows); ++i) {
    if (result.blocks[i].status == store::BlockStatus::ok) good.push_back(i);
  }
  return good;
}

std::vector<std::int32_t> throttled_rounds(const store::Result& result) {
  constexpr double usual_clocks = 0.95;
  const std::vector<std::size_t> good = good_blocks(result, result.gpu.size());
  std::map<std::int32_t, std::vector<double>> clocks;  // by case: at the power limit, each case has its own clocks
  for (const std::size_t i : good) {
    const double clock = result.gpu[i].together.mean_sm_clock_hz;
    if (std::isfinite(clock)) clocks[result.blocks[i].case_index].push_back(clock);
  }
  std::map<std::int32_t, double> usual;
  for (const auto& [case_index, of_case] : clocks) usual[case_index] = median(of_case);
  std::set<std::int32_t> rounds;
  for (const std::size_t i : good) {
    const store::ResultGpu& gpu = result.gpu[i];
    const bool is_slow = gpu.together.mean_sm_clock_hz < usual_clocks * usual[result.blocks[i].case_index];
    if ((!gpu.throttling.empty() && gpu.throttling != machine::power_cap) || is_slow)
      rounds.insert(result.blocks[i].round);
  }
  return {rounds.begin(), rounds.end()};
}

std::optional<Tails> tails_of(const store::Result& result, std::int32_t case_index) {
  std::vector<double> steps;
  for (const FinishedBlock& block : finished_blocks(result, case_index)) {
    for (const float seconds : result.timed_seconds(block.index)) {
      if (seconds > 0 && std::isfinite(seconds)) steps.push_back(seconds / block.seconds);
    }
  }
  std::ranges::sort(steps);
  constexpr std::size_t least_steps = 100;
  if (steps.size() < least_steps) return std::nullopt;
  // The smallest value that this percentage of all steps does not exceed.
  const auto percentile = [&](std::size_t percent) { return steps[(steps.size() * percent + 99) / 100 - 1]; };
  return Tails{percentile(95), percentile(99)};
}

HowFar how_far(const store::Result& result) {
  HowFar out;
  std::set<int> rounds, open_rounds;
  std::vector<const store::ResultBlock*> measured, open;
  for (const store::ResultBlock& block : result.blocks) {
    rounds.insert(block.round);
    if (will_still_run(result, block)) {
      open_rounds.insert(block.round);
      open.push_back(&block);
    } else if (block.has_run()) {
      measured.push_back(&block);
    }
  }
  out.blocks_done = measured.size();
  out.blocks = measured.size() + open.size();
  out.rounds = static_cast<int>(rounds.size());
  out.rounds_done = static_cast<int>(rounds.size() - open_rounds.size());
  if (open.empty() || measured.empty()) return out;
  std::ranges::stable_sort(measured, {}, [](const store::ResultBlock* block) { return block->start_unix_s; });
  double seconds = 0;  // from each block's start to the next one's in the same session, else the times that it reports
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const store::ResultBlock &block = *measured[i], &next = *measured[std::min(i + 1, measured.size() - 1)];
    const bool followed = next.session == block.session && next.start_unix_s > block.start_unix_s;
    seconds += followed ? next.start_unix_s - block.start_unix_s : block.setup_s + block.timed_total_s;
  }
  out.remaining_s = seconds / static_cast<double>(measured.size()) * static_cast<double>(open.size());
  return out;
}

config::Settings settings_of(const store::Result& result, const store::ResultCase& of) {
  config::Settings settings;
  for (const config::Variable& variable : config::registry()) {
    const std::string_view text = result.setting(of, variable.name);
    if (text.empty()) continue;
    try {
      variable.parse(settings, text);
    } catch (const Error&) {
      continue;  // parse() has changed nothing
    }
  }
  return settings;
}

std::string workload_of(const store::Result& result) {
  const store::ResultCase* baseline = result.baseline();
  const std::string_view workload = baseline == nullptr ? "" : result.setting(*baseline, "workload");
  return workload.empty() ? "gpt" : std::string(workload);
}

std::vector<std::string> names_to_choose(const store::Result& result) {
  std::vector<std::string> names;
  for (const store::ResultCase& row : result.cases) {
    const bool at_another_size = result.case_at(row.reference).role() == store::CaseRole::point;
    const bool follows =
        row.role() == store::CaseRole::control || (!store::is_reference(row.role()) && at_another_size);
    if (!follows) names.push_back(row.name);
  }
  return names;
}

CaseRanks::CaseRanks(const store::Result& result, std::int32_t case_index) {
  std::map<int, Ranks> by_stage;
  for (const store::ResultRole& row : store::roles_of(result, case_index)) {
    role_of_.push_back(row.role);
    by_role_.resize(std::max<std::size_t>(by_role_.size(), row.role + 1));
    by_role_[row.role].push_back(row.rank);
    by_stage[row.at[program::Axis::pipeline]].push_back(row.rank);
  }
  for (auto& [stage, ranks] : by_stage) alike_.push_back(std::move(ranks));
}

const CaseRanks::Ranks& CaseRanks::of_same_role(std::int32_t rank) const {
  static const Ranks none;
  return rank >= 0 && rank < count() ? by_role_[role_of_[rank]] : none;
}

program::Spans spans_of_case(const store::Result& result, std::int32_t case_index) {
  const auto differs = std::ranges::adjacent_find(result.rank_table, std::not_equal_to<>(), &store::ResultRank::node);
  if (differs == result.rank_table.end()) return {};
  std::vector<int> node_of;
  std::vector<program::Coordinates> at;
  for (const store::ResultRole& row : store::roles_of(result, case_index)) {
    node_of.push_back(row.node);
    at.push_back(row.at);
  }
  const bool tied = std::ranges::any_of(result.operations, [&](const store::ResultOperations& row) {
    return row.case_index == case_index && row.group == "embedding";
  });
  return program::spans_of(at, node_of, tied);
}

namespace {

// The largest relative differences that rounding explains.
struct Tolerance {
  double gradient = 0;  // for squared norms
  double third_loss = 0;
  double last_loss = 0;  // steps amplify rounding differences
};
constexpr Tolerance of_fp32{1e-4, 1e-4, 1e-3}, of_half{3e-2, 2e-2, 2e-2}, of_fp8{1.5e-1, 2e-2, 2e-2};
constexpr std::size_t third_step = 2;

constexpr int half_bits = 10, fp8_bits = 3;  // mantissa bits: of tf32 and fp16 (bf16 has fewer), and of e4m3

// A precision that this version does not know is treated as fp32.
int mantissa_bits(std::string_view precision) {
  const auto* row = std::ranges::find(config::precision_table, precision, &config::PrecisionRow::name);
  const bool known = row != config::precision_table.end();
  return (known ? *row : config::row_of(config::Precision::fp32)).product_mantissa_bits;
}

Tolerance tolerance(const store::Result& result, const store::ResultCase& a, const store::ResultCase& b) {
  const bool rounded = std::ranges::any_of(config::registry(), [&](const config::Variable& variable) {
    return variable.mathematics == config::Mathematics::rounded &&
           result.setting(a, variable.name) != result.setting(b, variable.name);
  });
  const int of_a = mantissa_bits(result.setting(a, "precision")), of_b = mantissa_bits(result.setting(b, "precision"));
  if (std::min(of_a, of_b) <= fp8_bits) return of_fp8;
  // Sums of gradients in bf16 depend on their order, which a layout or a bucket size changes.
  const bool sums_in_half = result.setting(a, "grad_reduce_precision") == "bf16";
  return rounded || sums_in_half || of_a <= half_bits ? of_half : of_fp32;
}

const store::ResultGradient* find_gradient(const store::Result& result, std::int32_t case_index) {
  const auto found = std::ranges::find(result.gradients, case_index, &store::ResultGradient::case_index);
  return found == result.gradients.end() ? nullptr : &*found;
}

// Returns the mean loss of a step over finished blocks; NaN if there is none.
double mean_loss(const store::Result& result, std::int32_t case_index, std::size_t step) {
  double sum = 0;
  int n = 0;
  for (const FinishedBlock& block : finished_blocks(result, case_index)) {
    if (block.index >= result.losses.size() || step >= result.losses[block.index].size()) continue;
    sum += result.losses[block.index][step];
    ++n;
  }
  return sum / n;
}

}  // namespace

bool asks_for_another_training(const store::Result& result, std::int32_t case_index) {
  const store::ResultCase &of = result.case_at(case_index), *baseline = result.baseline();
  if (baseline == nullptr) return false;
  if (of.tokens_per_step != baseline->tokens_per_step) return true;
  return std::ranges::any_of(config::registry(), [&](const config::Variable& variable) {
    return variable.mathematics == config::Mathematics::another &&
           result.setting(of, variable.name) != result.setting(*baseline, variable.name);
  });
}

std::string why_trains_differently(const store::Result& result, std::int32_t case_index) {
  const store::ResultCase* baseline = result.baseline();
  if (baseline == nullptr || asks_for_another_training(result, case_index)) return "";
  const std::int32_t reference = result.index_of(*baseline);
  const Tolerance allowed = tolerance(result, result.case_at(case_index), *baseline);
  std::string why;
  // Non-finite values have a warning of their own. A sum of squares is zero if there is nothing to square.
  const auto compare = [&](const std::string& what, double value, double of_baseline, double tolerated) {
    if (!why.empty() || !std::isfinite(value) || !std::isfinite(of_baseline) || of_baseline == 0) return;
    const double difference = std::abs(value / of_baseline - 1);
    if (difference > tolerated)
      why = fmt::format("{} is {:.6g}, the baseline's {:.6g}: {:.2g} % apart, {:.2g} % is allowed", what, value,
                        of_baseline, 100 * difference, 100 * tolerated);
  };
  const store::ResultGradient *own = find_gradient(result, case_index), *other = find_gradient(result, reference);
  if (own != nullptr && other != nullptr) {
    const std::string norm = "the squared norm of the first step's gradients";
    compare(norm + " of weights", own->sharded_squares, other->sharded_squares, allowed.gradient);
    compare(norm + " of norms, biases and positions", own->replicated_squares, other->replicated_squares,
            allowed.gradient);
  }
  const auto run = std::ranges::find_if(result.losses, [](const auto& losses) { return !losses.empty(); });
  if (run == result.losses.end()) return why;
  const std::size_t last = run->size() - 1, third = std::min(third_step, last);
  const auto loss = [&](const std::string& what, std::size_t step, double tolerated) {
    compare(what, mean_loss(result, case_index, step), mean_loss(result, reference, step), tolerated);
  };
  loss(fmt::format("the loss of step {}", third + 1), third, allowed.third_loss);
  if (last != third) loss("the last loss", last, allowed.last_loss);
  return why;
}

}  // namespace harness::analysis
