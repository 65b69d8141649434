#include "job/task.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace harness::job {
namespace {

constexpr std::size_t max_communication_durations = 1 << 26;  // of all ranks; 256 MiB

std::vector<KindTotal> totals_of(const program::Program& program, const std::vector<program::Interval>& intervals) {
  std::map<std::pair<std::string_view, program::StreamId>, KindTotal> by_kind;
  program::OperationId before = -1;
  for (const program::Interval& interval : intervals) {
    const program::Operation& operation = program.step.at(interval.operation);
    KindTotal& total = by_kind[{program::name_of(operation.action), interval.stream}];
    total.seconds += interval.end_s - interval.start_s;
    if (interval.operation != before) ++total.operations;
    before = interval.operation;
  }
  std::vector<KindTotal> totals;
  for (auto& [key, total] : by_kind) {
    total.kind = key.first;
    total.stream = program.streams.at(key.second);
    totals.push_back(std::move(total));
  }
  return totals;
}

}  // namespace

ProfiledStep sum_up(const program::Program& program, const std::vector<program::Interval>& intervals, int ranks) {
  ProfiledStep samples;
  for (const program::Interval& interval : intervals) samples.step_s = std::max(samples.step_s, interval.end_s);
  samples.totals = totals_of(program, intervals);
  samples.communication_s = program::communication_durations(program, intervals);
  if (samples.communication_s.size() * ranks > max_communication_durations) samples.communication_s.clear();
  const auto communicates = [&](program::OperationId id) {
    return program::is_communication(program.step.at(id).action);
  };
  samples.split = program::split_step(intervals, communicates, samples.step_s);
  return samples;
}

void choose_step(TimelineSamples& samples, std::span<const double> step_s) {
  if (step_s.empty() || samples.offered.size() != step_s.size())
    fail("a rank offers {} of {} profiled steps", samples.offered.size(), step_s.size());
  std::vector<std::size_t> order(step_s.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t step) { return step_s[step]; });
  static_cast<ProfiledStep&>(samples) = std::move(samples.offered[order[(order.size() - 1) / 2]]);
  samples.offered.clear();
  samples.all = {static_cast<int>(step_s.size()), step_s[order.front()], step_s[order.back()]};
}

}  // namespace harness::job
