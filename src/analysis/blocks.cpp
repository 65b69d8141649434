#include "analysis/blocks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "base/median.h"
#include "machine/conditions.h"

namespace harness::analysis {
namespace {

// From a block's start to the next one's, in the same session; of the last one what it reports itself.
double duration_of(const store::ResultBlock& block, const store::ResultBlock* next) {
  const bool followed = next != nullptr && next->session == block.session && next->start_unix_s > block.start_unix_s;
  return followed ? next->start_unix_s - block.start_unix_s : block.setup_s + block.timed_total_s;
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
  double seconds = 0;
  for (std::size_t i = 0; i < measured.size(); ++i)
    seconds += duration_of(*measured[i], i + 1 < measured.size() ? measured[i + 1] : nullptr);
  out.remaining_s = seconds / static_cast<double>(measured.size()) * static_cast<double>(open.size());
  return out;
}

}  // namespace harness::analysis
