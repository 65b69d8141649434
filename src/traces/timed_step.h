#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/breakdown.h"
#include "traces/timeline.h"

namespace harness::traces {

/// The work of a GPU in one step.
struct StepWork {
  double step_s = 0;
  std::vector<analysis::StepOperation> operations;  // copies and memsets are of no part
  /// The collectives among `operations`, each with its place in the device's list of them (collectives_of).
  std::vector<std::pair<std::size_t, std::size_t>> collectives;
  double loading_s = 0;  // before the first event, where the trace says it itself
  IdleTimes idle_s{};    // of the gaps, by cause
  /// What texts of `operations` refer to, as far as they are of the file.
  std::shared_ptr<std::set<std::string>> words = std::make_shared<std::set<std::string>>();
};

/// `idle_s`: in the window, by cause.
StepWork work_in(const Window& window, const Capture& capture, const Device& device, const Timeline& timeline,
                 const IdleTimes& idle_s);

/// A step of a trace, taken apart as the profiled step of harness is: `breakdown` has the same parts. Copies are no
/// part of harness's own step and stand by themselves.
struct TimedStep {
  analysis::Breakdown breakdown;
  double copies_s = 0;  // copies and memsets while no kernel ran
  double waits_s = 0;   // in communication, for later ranks and other stages, hidden or not
  IdleTimes idle_s{};
};

/// Every moment belongs to one part: to computation (on the main stream first), then to communication or the waiting
/// in it, then to copies.
TimedStep time_step(const StepWork& work);

TimedStep mean_of(const std::vector<TimedStep>& steps);

/// The axis of a process group by its description: Megatron-LM's names and those of torch's device mesh.
Part axis_of(std::string_view description);

}  // namespace harness::traces
