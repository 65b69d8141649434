#include "sweep/needed_space.h"

#include <algorithm>

#include "base/error.h"
#include "store/result_file.h"
#include "sweep/decide.h"
#include "sweep/planned_result.h"

namespace harness::sweep {

namespace {

// Rank 0 holds them while it prepares, and whoever shows the file: some 300 bytes each.
constexpr std::int64_t most_intervals = 20'000'000;

}  // namespace

std::int64_t needed_space(const plan::Plan& plan) {
  // An operation may be several kernels, and so several intervals.
  constexpr std::int64_t intervals_of_operation = 2;
  const bool all_ranks = plan.experiment.measure.timeline == config::Timelines::all;
  store::Result result = planned_result(plan);
  if (plan.experiment.measure.auto_steps) result.steps = most_auto_steps;
  store::ResultCapacity capacity;
  for (const plan::PlannedCase& planned : plan.cases) {
    std::int64_t sorts = 0;  // of operations, on the rank that has most of them
    const auto roles = std::max<std::int64_t>(1, std::ssize(planned.survey.counts));
    const std::int64_t kept_of_role = all_ranks ? planned.layout.ranks() / roles : 1;
    for (const program::Count& count : planned.survey.counts) {
      capacity.intervals += kept_of_role * intervals_of_operation * count.operations;
      sorts = std::max(sorts, static_cast<std::int64_t>(count.flop_kinds.size() + count.traffic.size()) + 8);
    }
    capacity.totals += sorts * plan.ranks;
  }
  if (all_ranks && capacity.intervals > most_intervals) {
    fail(
        "measure.timeline: all would keep up to {} million intervals of profiled steps; at most {} million fit: try "
        "fewer cases (--only), or timeline: roles",
        capacity.intervals / 1'000'000, most_intervals / 1'000'000);
  }
  return store::most_bytes(result, capacity);
}

}  // namespace harness::sweep
