#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/breakdown.h"
#include "traces/capture.h"

namespace harness::traces {

struct Timeline {
  std::int64_t origin_ns = 0, end_ns = 0;
  std::uint32_t main_stream = 0;  // stream with most computation

  /// Returns seconds since the first event.
  double seconds(std::int64_t ns) const { return static_cast<double>(ns - origin_ns) * 1e-9; }
};

/// `device` must have at least one event.
Timeline timeline_of(const Device& device);

struct NamedKernel {
  std::string name;
  Class kernel_class = 0;  // by name if the arguments give several
  std::int64_t count = 0;
  double seconds = 0;  // sum of durations: work, not step time
};

/// Where the time of a window went, in seconds:
/// step = compute + exposed_communication + exposed_memory + idle. All are lengths of unions, never sums.
struct Figures {
  std::string window;
  double step_s = 0, busy_s = 0, compute_s = 0, communication_s = 0, exposed_communication_s = 0, overlapped_s = 0,
         memcpy_s = 0, exposed_memory_s = 0, idle_s = 0;
  std::int64_t kernels = 0, collectives = 0;  // starting inside the window
  std::optional<double> unclassified;         // their fraction of kernel time without a class; absent: no kernels
  std::vector<NamedKernel> top;               // the five kernels with the longest total durations
};

/// Computes the figures of one device's windows.
class Measure {
 public:
  Measure(const Device& device, const Names& names);

  Figures of(const Window& window) const;
  /// Returns the figures of the first windows, up to eight times as many events in total as the device has.
  std::vector<Figures> of(const std::vector<Window>& windows) const;
  std::int64_t kernels_in(const Window& window) const;
  /// Returns the kernels that start inside the window, longest total duration first.
  std::vector<NamedKernel> longest_in(const Window& window, std::size_t most) const;

 private:
  std::span<const GpuEvent> in(const Window& window) const;  // events that start in the window

  const Device& device_;
  const Names& names_;
  std::vector<std::int64_t> until_ns_;  // by event: latest end so far, including its own
};

/// Returns the kernel with the longest total duration on those side streams where no kernel has a class; "": there are
/// no such streams, or they take less than 1 % of the time.
std::string kernel_of_unknown_stream(const Device& device, const Names& names);
/// Returns the ten longest kernels without a class.
std::vector<NamedKernel> kernels_without_class(const Device& device, const Names& names);

// ---- steps

/// Returns the windows of docs/read.md: "all", "host:NAME" for each marked step, then "device:NAME", from the first GPU
/// event launched inside the mark to that of the next mark. The last of several marks has no device window.
std::vector<Window> windows_of(const Capture& capture, const Device& device, const Timeline& timeline);

struct Steps {
  std::string how;                 // how they were found, for display; "": none found
  std::vector<Window> windows;     // by start
  std::vector<std::size_t> alike;  // windows to compare: without the first and those with other kernel counts
  std::size_t shown = 0;           // the one of median length among `alike`, or the requested one
  bool numbered = false;           // their names identify the step of the job, equal on all ranks
  bool without_last = false;       // the last step is marked, but its end is not
  bool no_optimizer = false;       // most have no optimizer kernels: layers, micro-batches, or inference
};

/// Finds steps by profiler marks, otherwise by recurring annotations or the period of the kernels on the main stream.
/// `wanted`: name of the step to show, if it exists and its length is within 5 % of the median; "": any.
Steps find_steps(const Capture& capture, const Device& device, const Timeline& timeline, const Measure& measure,
                 const std::string& wanted);

// ---- idle time

/// Seconds by cause.
struct IdleTimes {
  std::array<double, cause_count> of_cause{};
  double stalled_s = 0;  // of all: the work was launched and did not start for long

  double& operator[](Cause cause) { return of_cause[static_cast<std::size_t>(cause)]; }
  double operator[](Cause cause) const { return of_cause[static_cast<std::size_t>(cause)]; }
};

/// Returns the idle time by cause for each of `windows`; beyond the device's last event, as if another one followed.
std::vector<IdleTimes> find_idle(const Capture& capture, const Device& device, const Timeline& timeline,
                                 const std::vector<Window>& windows);

/// The work of a GPU in one step.
struct StepWork {
  double step_s = 0;
  std::vector<analysis::StepOperation> operations;  // copies and memsets belong to no part
  /// Collectives as pairs: index in `operations`, index in the device's list (collectives_of).
  std::vector<std::pair<std::size_t, std::size_t>> collectives;
  double loading_s = 0;  // before the first event, if the trace records it
  IdleTimes idle_s{};    // gaps by cause
  /// Storage for the texts in `operations` that come from the file.
  std::shared_ptr<std::set<std::string>> words = std::make_shared<std::set<std::string>>();
};

/// Returns the work in a window, without the idle times.
StepWork work_in(const Window& window, const Capture& capture, const Device& device, const Timeline& timeline);

/// A traced step, divided into the same parts as a step that harness profiles (`breakdown`). Copies belong to no part
/// of a harness step and are separate.
struct TimedStep {
  analysis::Breakdown breakdown;
  double copies_s = 0;  // copies and memsets while no kernel ran
  double waits_s = 0;   // in communication, for late ranks and other stages, hidden or not
  IdleTimes idle_s{};
};

/// Assigns every moment to one part: first computation (the main stream first), then communication or the waiting in
/// it, then copies.
TimedStep time_step(const StepWork& work);

TimedStep mean_of(const std::vector<TimedStep>& steps);

/// Returns the axis of a process group from its description, as Megatron-LM or torch's device mesh names it.
Part axis_of(std::string_view description);

}  // namespace harness::traces
