#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/text.h"
#include "config/experiment.h"
#include "machine/conditions.h"
#include "program/program.h"
#include "program/timeline.h"

namespace harness::job {

// The tasks of a block, each with the type of samples that every rank returns. A task that runs no step needs no other
// rank.

/// Asks what the rank runs on, without a step.
struct Probe {};
struct ProbeSamples {
  NameValues identity;    // library versions, CPU or GPU model, settings: equal on all ranks
  std::string device;     // as Backend::device()
  double peak_flops = 0;  // of products in the block's precision, FLOP/s of this rank; 0: not measured
  std::string bound;      // the worker's CPUs: "CPUs 0-7"
};

/// Copies between the rank's device and the memory of its host, without a step. All ranks begin when the last is ready.
struct CopyWithHost {
  double seconds = 2;  // about, in all
};
struct HostCopySamples {
  std::string device;         // as Backend::device()
  machine::HostCopies rates;  // zeros where the device has no memory of its own
};

/// Times the choices that the Program leaves open, without a step.
struct Tune {
  double seconds = 45;  // about, in all
};
struct TuneSamples {
  NameValues tuning;  // what was found, by key
};

/// Runs one untimed step with the communication library's log.
struct Observe {
  /// The number of ranks, the first ones, that return their logs: enough to hold one of every kind of communicator, and
  /// little enough for rank 0.
  int logs = 64;
};
struct ObserveSamples {
  std::string nccl_log;  // as much of it as is kept
};

/// Runs the warm-up and some profiled steps, untimed, and keeps the one that is the median by its length: one alone may
/// be a hiccup. Keeps the norm of the gradients of the first step of all.
struct RecordTimeline {
  config::Timelines ranks = config::Timelines::roles;  // whose intervals come home
  int steps = 1;                                       // profiled ones
};
/// One operation kind's share of one rank's profiled step.
struct KindTotal {
  std::string kind;  // operation name
  std::string stream;
  double seconds = 0;
  std::int64_t operations = 0;
};
/// A rank's contribution to the squared norm of the gradients of the first step: the sum of their squares, divided by n
/// where n ranks hold the same numbers. Parameters that the tensor axis shards are summed apart from the replicated
/// ones, because the few replicated ones would not show in one sum. NaN: the step does not train.
struct GradientSquares {
  double sharded = std::numeric_limits<double>::quiet_NaN(), replicated = std::numeric_limits<double>::quiet_NaN();
};
/// A profiled step of one rank.
struct ProfiledStep {
  std::vector<program::Interval> timeline;  // empty where only its totals come home
  double step_s = 0;                        // until the last operation ended
  double loading_s = 0;                     // filling the inputs, within the step or concurrent with it
  std::vector<KindTotal> totals;
  std::vector<float> communication_s;  // program::communication_durations(); empty: too many
  program::StepSplit split;
};
/// The times of the profiled steps, each of its slowest rank.
struct ProfiledSteps {
  int count = 1;
  double fastest_s = std::numeric_limits<double>::quiet_NaN(), slowest_s = std::numeric_limits<double>::quiet_NaN();
};
/// The step that was kept. A worker does not know it: it offers all of them, and the ranks agree (choose_step()).
struct TimelineSamples : ProfiledStep {
  GradientSquares gradient;
  ProfiledSteps all;
  std::vector<ProfiledStep> offered;  // in order; empty once the ranks have agreed
};

/// Runs the warm-up and the timed steps.
struct TimeSteps {
  int steps = 6;
};
struct TimedSamples {
  std::vector<double> step_s;  // warm-up steps first, then the timed ones
  std::vector<float> losses;   // of the same steps
  double timed_total_s = 0;    // around all timed steps; must agree with their sum
  int skipped_steps = 0;       // timed steps whose update was left out
  machine::GpuStatistics gpu;  // of this rank's device, during the timed steps
};

using Task = std::variant<TimeSteps, RecordTimeline, Observe, Tune, Probe, CopyWithHost>;
/// In the order of Task.
using TaskSamples =
    std::variant<TimedSamples, TimelineSamples, ObserveSamples, TuneSamples, ProbeSamples, HostCopySamples>;

/// The time of a worker before its first timed step, by phase.
struct SetUp {
  double build_s = 0, connect_s = 0, initialize_s = 0;
  double first_step_s = 0;  // from the worker's start to the end of its first step
};

/// The measurements that one rank returns from a block.
struct Samples {
  TaskSamples task;
  SetUp set_up;
  std::int64_t peak_memory_bytes = 0;  // on the device, or resident on the host: high-water mark
  std::vector<std::string> warnings;   // each with a remedy
};

/// Sums up a profiled step of one rank: its length until the last operation ended, its totals by kind and stream, its
/// split, and the durations of its communications, unless those of all `ranks` are more than rank 0 should hold. Leaves
/// out the intervals themselves.
ProfiledStep sum_up(const program::Program& program, const std::vector<program::Interval>& intervals, int ranks);

/// Keeps of the steps that a worker offers the median by length, and says how long all of them took. step_s: of the
/// slowest rank in each of them, the same on all ranks, so that all keep the same step.
void choose_step(TimelineSamples& samples, std::span<const double> step_s);

}  // namespace harness::job
