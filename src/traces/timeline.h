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

/// The span of a device's GPU events.
struct Timeline {
  std::int64_t origin_ns = 0, end_ns = 0;
  std::uint32_t main_stream = 0;  // with most computation

  /// Since the first event.
  double seconds(std::int64_t ns) const { return static_cast<double>(ns - origin_ns) * 1e-9; }
};

/// `device` has at least one event.
Timeline timeline_of(const Device& device);

/// All kernels of one name.
struct NamedKernel {
  std::string name;
  Class kernel_class = 0;  // where their arguments tell several, that of the name
  std::int64_t count = 0;
  double seconds = 0;  // the sum of their durations: work, not time of the step
};

/// Where the time of a window went, in seconds:
/// step = compute + exposed_communication + exposed_memory + idle. All are lengths of unions, never sums.
struct Figures {
  std::string window;
  double step_s = 0, busy_s = 0, compute_s = 0, communication_s = 0, exposed_communication_s = 0, overlapped_s = 0,
         memcpy_s = 0, exposed_memory_s = 0, idle_s = 0;
  std::int64_t kernels = 0, collectives = 0;  // that start inside the window
  std::optional<double> unclassified;         // the share of the time of these kernels; absent: there are none
  std::vector<NamedKernel> top;               // the five kernels with the largest sums of durations
};

/// Computes the figures of windows of one device.
class Measure {
 public:
  Measure(const Device& device, const Names& names);

  Figures of(const Window& window) const;
  /// Of the first windows: as many as hold eight times the device's events together.
  std::vector<Figures> of(const std::vector<Window>& windows) const;
  std::int64_t kernels_in(const Window& window) const;
  /// Kernels that start inside the window, the longest sums first.
  std::vector<NamedKernel> longest_in(const Window& window, std::size_t most) const;

 private:
  std::span<const GpuEvent> in(const Window& window) const;  // that start in it

  const Device& device_;
  const Names& names_;
  std::vector<std::int64_t> until_ns_;  // by event: the latest end of it and of those before it
};

/// The longest kernel, by its sum, of the streams beside the main one none of whose kernels has a class; "": there are
/// none, or they take less than 1 % of the time.
std::string kernel_of_unknown_stream(const Device& device, const Names& names);
/// The ten longest kernels without a class.
std::vector<NamedKernel> kernels_without_class(const Device& device, const Names& names);

// ---- steps

/// The windows of docs/read.md: "all", then "host:NAME" of each step that is marked, then "device:NAME": from the first
/// GPU event that was launched inside the mark to that of the next mark. The last of several marks has none.
std::vector<Window> windows_of(const Capture& capture, const Device& device, const Timeline& timeline);

/// The steps of a device.
struct Steps {
  std::string how;                 // how they were found, for people; "": there are none
  std::vector<Window> windows;     // by start
  std::vector<std::size_t> alike;  // windows to compare: without the first one and those with other numbers of kernels
  std::size_t shown = 0;           // the one of median length among `alike`, or the one that was asked for
  bool numbered = false;           // their names tell which step of the job each is: the same on all ranks
  bool without_last = false;       // a last one is marked, but nothing marks its end
  bool no_optimizer = false;       // a period without optimizer kernels: a layer, or inference
};

/// By marks of the profiler, else by annotations that recur, or by the period of the kernels on the main stream.
/// `wanted`: the name of the step to show, if it is there and takes as long as the median within 5 %; "": any.
Steps find_steps(const Capture& capture, const Device& device, const Timeline& timeline, const Measure& measure,
                 const std::string& wanted);

// ---- idle time

/// Seconds by cause.
using IdleTimes = std::array<double, cause_count>;

/// The idle time between the first and the last event of a device by cause, in each of `windows` (of the timeline).
std::vector<IdleTimes> find_idle(const Capture& capture, const Device& device, const Timeline& timeline,
                                 const Stretches& windows);

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
