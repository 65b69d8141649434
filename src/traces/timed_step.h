#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/breakdown.h"
#include "traces/timeline.h"

namespace harness::traces {

/// A GPU event of a step, in seconds since the step began.
struct StepEvent {
  double start_s = 0, end_s = 0;
  Part part = Part::other_compute;
  std::uint32_t kind = 0, group = 0, phase = 0;  // in StepWork::texts: "norm"; "data"; "forward"
  bool main = false;                             // on the stream with most computation
  bool copies = false;                           // a copy or memset, of no part
  bool recomputed = false;                       // done again for the backward pass
  std::optional<std::size_t> collective = {};    // in the device's list of them (collectives_of)
  double waiting_s = NAN, bubble_s = NAN;        // at its beginning: for later ranks, then for other stages
};

/// The work of a GPU in one step.
struct StepWork {
  double step_s = 0;
  std::vector<std::string> texts;
  std::vector<StepEvent> events;
  double loading_s = 0;  // before the first event, where the trace says it itself
  IdleTimes idle_s{};    // of the gaps, by cause
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
