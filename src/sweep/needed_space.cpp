#include "sweep/needed_space.h"

#include <algorithm>

#include "store/space.h"
#include "sweep/decide.h"
#include "sweep/planned_result.h"

namespace harness::sweep {

std::int64_t needed_space(const plan::Plan& plan) {
  // An operation may be several kernels, and so several intervals.
  constexpr std::int64_t intervals_of_operation = 2;
  store::Result result = planned_result(plan);
  if (plan.experiment.measure.auto_steps) result.steps = most_auto_steps;
  store::ResultCapacity capacity;
  for (const plan::PlannedCase& planned : plan.cases) {
    std::int64_t sorts = 0;  // of operations, on the rank that has most of them
    for (const program::Count& count : planned.survey.counts) {
      capacity.intervals += intervals_of_operation * count.operations;
      sorts = std::max(sorts, static_cast<std::int64_t>(count.flop_by_kind.size() + count.traffic.size()) + 8);
    }
    capacity.totals += sorts * plan.ranks;
  }
  return store::most_bytes(result, capacity);
}

}  // namespace harness::sweep
