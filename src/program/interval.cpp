#include "program/interval.h"

#include <algorithm>
#include <vector>

#include "base/part.h"

namespace harness::program {

StepSplit split_step(std::span<const Interval> intervals, const std::function<bool(OperationId)>& is_communication,
                     double step_s) {
  std::vector<Stretch> parts[2];
  for (const Interval& interval : intervals) {
    parts[is_communication(interval.operation) ? 1 : 0].push_back(
        {std::max(interval.start_s, 0.0), std::min(interval.end_s, step_s)});
  }
  const Stretches compute = united(std::move(parts[0])), communication = united(std::move(parts[1]));
  const Stretches exposed = without(communication, compute);
  StepSplit split;
  split.step_s = step_s;
  split.compute_s = length(compute);
  split.communication_s = length(communication);
  split.exposed_s = length(exposed);
  split.overlapped_s = length(without(communication, exposed));
  split.idle_s = length(without(without(step_s > 0 ? Stretches{{0, step_s}} : Stretches{}, compute), exposed));
  return split;
}

}  // namespace harness::program
