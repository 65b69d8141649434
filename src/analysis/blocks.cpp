#include "analysis/blocks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "base/median.h"
#include "machine/conditions.h"

namespace harness::analysis {
namespace {

double known(double seconds) {
  return std::isfinite(seconds) ? std::max(seconds, 0.0) : 0;
}

double steps_of(const store::Result& result, std::size_t block) {
  double seconds = 0;
  for (const float step : result.step_seconds[block]) seconds += known(step);
  return seconds;
}

struct Mean {
  double sum = 0;
  int n = 0;
  void add(double value) {
    sum += value;
    ++n;
  }
  double value() const { return sum / n; }
};

// From a block's start to the next one's, in the same session; of the last one what it reports itself.
double duration_of(const store::ResultBlock& block, const store::ResultBlock* next) {
  const bool followed = next != nullptr && next->session == block.session && next->start_unix_s > block.start_unix_s;
  return followed ? next->start_unix_s - block.start_unix_s : block.setup_s + block.timed_total_s;
}

// A one-way analysis of variance with processes as groups (R. A. Fisher; S. R. Searle, G. Casella and C. E. McCulloch,
// "Variance Components"): the mean square between processes is n times their variance plus that of a block. Each value
// is a block's log seconds beyond its case's median.
std::optional<double> deviation_of(const std::map<std::int32_t, std::vector<double>>& by_process) {
  double all = 0, sum = 0, squares_of_sizes = 0, between = 0, within = 0;
  int groups = 0;
  for (const auto& [process, values] : by_process) {
    if (values.size() < 2) continue;
    const auto n = static_cast<double>(values.size());
    const double center = std::accumulate(values.begin(), values.end(), 0.0) / n;
    ++groups;
    all += n;
    squares_of_sizes += n * n;
    sum += n * center;
    between += n * center * center;
    for (const double value : values) within += (value - center) * (value - center);
  }
  if (groups < 3 || !(all > groups)) return std::nullopt;
  between = (between - sum * sum / all) / (groups - 1);
  within /= all - groups;
  const double blocks_of_one = (all - squares_of_sizes / all) / (groups - 1);
  return std::sqrt(std::max(between - within, 0.0) / blocks_of_one);
}

}  // namespace

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

std::vector<std::int32_t> throttled_rounds(const store::Result& result) {
  constexpr double usual_clocks = 0.95;
  const std::size_t n = std::min(result.blocks.size(), result.gpu.size());
  std::map<std::int32_t, std::vector<double>> clocks;  // by case: at the power limit, each has clocks of its own
  for (std::size_t i = 0; i < n; ++i) {
    const double clock = result.gpu[i].together.mean_sm_clock_hz;
    if (result.blocks[i].status == store::BlockStatus::ok && std::isfinite(clock))
      clocks[result.blocks[i].case_index].push_back(clock);
  }
  std::map<std::int32_t, double> usual;
  for (const auto& [case_index, of_case] : clocks) usual[case_index] = median(of_case);
  std::set<std::int32_t> rounds;
  for (std::size_t i = 0; i < n; ++i) {
    if (result.blocks[i].status != store::BlockStatus::ok) continue;
    const store::ResultGpu& gpu = result.gpu[i];
    const auto of_case = usual.find(result.blocks[i].case_index);
    const bool is_slow = of_case != usual.end() && gpu.together.mean_sm_clock_hz < usual_clocks * of_case->second;
    if ((!gpu.throttling.empty() && gpu.throttling != machine::power_cap) || is_slow)
      rounds.insert(result.blocks[i].round);
  }
  return {rounds.begin(), rounds.end()};
}

std::vector<double> steps_over_median(const store::Result& result, std::int32_t case_index) {
  std::vector<double> steps;
  for (const FinishedBlock& block : finished_blocks(result, case_index)) {
    for (const float seconds : result.timed_seconds(block.index)) {
      if (seconds > 0 && std::isfinite(seconds)) steps.push_back(seconds / block.seconds);
    }
  }
  std::ranges::sort(steps);
  return steps;
}

std::optional<Tails> tails_of(const store::Result& result, std::int32_t case_index) {
  const std::vector<double> steps = steps_over_median(result, case_index);
  constexpr std::size_t least_steps = 100;
  if (steps.size() < least_steps) return std::nullopt;
  // The smallest value that this percentage of all steps does not exceed.
  const auto percentile = [&](std::size_t percent) { return steps[(steps.size() * percent + 99) / 100 - 1]; };
  return Tails{percentile(95), percentile(99)};
}

std::optional<BlockTime> time_of_blocks(const store::Result& result) {
  BlockTime time;
  for (std::size_t i = 0; i < result.blocks.size() && i < result.step_seconds.size(); ++i) {
    const store::ResultBlock& block = result.blocks[i];
    const double build = block.build_s, connect = block.connect_s, initialize = block.initialize_s;
    const bool said = std::isfinite(block.total_s + build + connect + initialize);
    if (block.status != store::BlockStatus::ok || !said) continue;
    ++time.blocks;
    // Each is the slowest rank's, so together they can exceed the whole by a little.
    const double steps = steps_of(result, i);
    time.build += build;
    time.connect += connect;
    time.initialize += initialize;
    time.steps += steps;
    time.start += known(block.setup_s - build - connect - initialize);
    time.end += known(block.total_s - block.setup_s - steps);
    if (i + 1 == result.blocks.size()) continue;
    const store::ResultBlock& next = result.blocks[i + 1];
    if (next.session == block.session) time.between += known(next.start_unix_s - block.start_unix_s - block.total_s);
  }
  if (time.blocks == 0) return std::nullopt;
  return time;
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
    } else if (was_tried(block)) {
      measured.push_back(&block);
    }
  }
  out.blocks_done = measured.size();
  out.blocks = measured.size() + open.size();
  out.rounds = static_cast<int>(rounds.size());
  out.rounds_done = static_cast<int>(rounds.size() - open_rounds.size());
  if (open.empty() || measured.empty()) return out;
  std::ranges::stable_sort(measured, {}, [](const store::ResultBlock* block) { return block->start_unix_s; });
  Mean all;
  std::map<std::int32_t, Mean> by_case;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const double seconds = duration_of(*measured[i], i + 1 < measured.size() ? measured[i + 1] : nullptr);
    all.add(seconds);
    by_case[measured[i]->case_index].add(seconds);
  }
  double remaining_s = 0;
  for (const store::ResultBlock* block : open) {
    const auto own = by_case.find(block->case_index);
    remaining_s += own == by_case.end() ? all.value() : own->second.value();
  }
  out.remaining_s = remaining_s;
  return out;
}

std::optional<Processes> find_processes(const store::Result& result) {
  if (!shares_processes(result)) return std::nullopt;
  const std::vector<FinishedBlock> blocks = finished_blocks(result);
  std::map<std::int32_t, std::vector<double>> by_case, beyond_case;
  for (const FinishedBlock& block : blocks) by_case[block.case_index].push_back(std::log(block.seconds));
  for (const FinishedBlock& block : blocks)
    beyond_case[result.blocks[block.index].process].push_back(std::log(block.seconds) -
                                                              median(by_case[block.case_index]));
  Processes out;
  out.processes = static_cast<int>(beyond_case.size());
  out.shared =
      static_cast<int>(std::ranges::count_if(beyond_case, [](const auto& row) { return row.second.size() > 1; }));
  out.deviation = deviation_of(beyond_case);
  return out;
}

}  // namespace harness::analysis
