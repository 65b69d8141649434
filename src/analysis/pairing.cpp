#include "analysis/pairing.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analysis/statistics.h"

namespace harness {
namespace {

struct Finished {
  std::int32_t session = 0;
  double seconds = 0;
};

// By round. A round holds each case once.
std::map<std::int32_t, Finished> finished_blocks(const Result& result, int case_index) {
  std::map<std::int32_t, Finished> blocks;
  for (std::size_t i = 0; i < result.blocks.size(); ++i) {
    if (result.blocks[i].case_index != case_index) continue;
    if (const auto seconds = block_median(result, i)) {
      blocks[result.blocks[i].round] = {result.blocks[i].session, *seconds};
    }
  }
  return blocks;
}

}  // namespace

std::optional<double> block_median(const Result& result, std::size_t block) {
  if (result.blocks[block].status != BlockStatus::ok || block >= result.step_seconds.size()) return {};
  const auto& steps = result.step_seconds[block];
  std::vector<double> timed;
  for (auto step = static_cast<std::size_t>(result.warmup_steps); step < steps.size(); ++step) {
    if (std::isfinite(steps[step]) && steps[step] > 0) timed.push_back(steps[step]);
  }
  if (timed.empty()) return {};
  return median(timed);
}

std::vector<std::int32_t> throttled_rounds(const Result& result) {
  constexpr double least_clock = 0.95;
  const std::size_t n = std::min(result.blocks.size(), result.gpu.size());
  std::vector<double> clocks;
  for (std::size_t i = 0; i < n; ++i) {
    const double clock = result.gpu[i].sm_clock_hz;
    if (result.blocks[i].status == BlockStatus::ok && std::isfinite(clock)) clocks.push_back(clock);
  }
  const double usual = median(clocks);
  std::set<std::int32_t> rounds;
  for (std::size_t i = 0; i < n; ++i) {
    if (result.blocks[i].status != BlockStatus::ok) continue;
    const ResultGpu& gpu = result.gpu[i];
    if (!gpu.throttling.empty() || gpu.sm_clock_hz < least_clock * usual) rounds.insert(result.blocks[i].round);
  }
  return {rounds.begin(), rounds.end()};
}

Pairs pair_blocks(const Result& result, int first_case, int second_case, const std::vector<std::int32_t>& without) {
  const auto first = finished_blocks(result, first_case);
  const auto second = finished_blocks(result, second_case);
  Pairs pairs;
  for (const auto& [round, block] : first) {
    if (std::ranges::find(without, round) != without.end()) continue;
    const auto other = second.find(round);
    if (other == second.end() || other->second.session != block.session) continue;
    pairs.first.push_back(block.seconds);
    pairs.second.push_back(other->second.seconds);
  }
  return pairs;
}

int find_case(const Result& result, const std::string& name) {
  for (std::size_t i = 0; i < result.cases.size(); ++i) {
    if (result.cases[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

const ResultPoint* find_point(const Result& result, int case_index) {
  for (const ResultPoint& point : result.points) {
    if (point.case_index == case_index) return &point;
  }
  return nullptr;
}

}  // namespace harness
