#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/median.h"
#include "config/calibration.h"
#include "job/job.h"
#include "plan/plan.h"
#include "program/program.h"
#include "program/timeline.h"

namespace harness::calibrate {

/// The sizes to measure. Predictions interpolate between them.
struct Wanted {
  config::BackendKind backend{};
  config::Settings settings;  // settings of all measurements, apart from sizes
  std::vector<config::Precision> precisions;
  std::vector<config::GemmShape> products;
  std::vector<std::int64_t> message_bytes;  // ascending
  config::Model layer;                      // a one-layer model, whose steps supply the other operations
  std::vector<std::int64_t> micro_batches;  // micro-batch sizes of its steps
};

/// Returns the sizes that the cases of a sweep have. Throws Error if calibrate measures no precision of its cases.
Wanted wanted_by(const plan::Plan& plan);
/// Returns sizes from where a device of that kind is slow to where it reaches its full rate.
Wanted usual(config::BackendKind backend);

struct Device {
  std::string name;
  int sms = 0, compute_capability = 0;  // 90 means 9.0; 0: not known, or a CPU
  double memory_bytes = 0;              // per rank; 0: not known
  bool nvswitch = false;                // known to come in machines whose GPUs reach each other at the full rate
};

/// Returns the device; on GPU backends, asks a worker on each rank. Throws Error if a worker does not start.
Device device_of(job::Job& job, const Wanted& wanted);

/// Whether there are several nodes with equally many ranks, more than one, numbered node by node.
bool measures_within_nodes(const std::vector<job::RankPlace>& places);

/// Medians over ranks, repetitions and rounds; all ranks measure at once.
struct Measured {
  config::BackendKind backend{};
  int ranks = 1, nodes = 1, ranks_of_node = 1;
  std::string host;
  Device device;
  int rounds = 0;
  double took_s = 0;
  std::map<config::Precision, double> peak_flops;  // rate of the fastest product, run back to back
  /// By operation name: computations within a step of one layer, among other operations, over program::work_of().
  std::map<std::pair<config::Precision, std::string>, config::Curve> computations;
  /// By operation name: all ranks as one group, over the size as the caller passes it. Empty: one rank.
  std::map<std::string, config::Curve> communications;
  /// Like `communications`, but the ranks of each node form a group, all nodes at once. Empty if
  /// measures_within_nodes() is false.
  std::map<std::string, config::Curve> within_node;
  double hop_s = 0;             // delay from the end of a dependency on another stream to the operation's start
  double step_s = 0;            // duration of an almost empty step beyond its operations
  double slowed_computing = 1;  // factor on computations that run beside a communication
  double slowed_communicating = 1;
  std::int64_t largest_message_bytes = 0;
};

struct ProfiledStep {
  const program::Program& program;
  std::vector<program::Interval> intervals;

  double seconds(program::OperationId id) const { return intervals[id].end_s - intervals[id].start_s; }
};

/// Curves through the medians of samples, by key, without sizes whose time is too short to measure.
template <class Key>
std::map<Key, config::Curve> curves_of(const std::map<std::pair<Key, double>, std::vector<double>>& samples) {
  std::map<Key, std::vector<config::CurvePoint>> points;
  for (const auto& [key, of_size] : samples) {
    if (const double s = median(of_size); s > 0) points[key.first].push_back({key.second, s});
  }
  std::map<Key, config::Curve> curves;
  for (auto& [key, some] : points) curves[key] = config::Curve(std::move(some));
  return curves;
}

/// Collects samples of operations from the profiled steps of all ranks and rounds.
class StepSamples {
 public:
  /// Adds the durations of computations that run alone, and the factors by which computations and concurrent
  /// all-reduces slow each other down.
  void take_computations(const ProfiledStep& step, config::Precision precision);
  /// Adds the delays from the end of an operation's dependency on another stream to its own start.
  void take_hops(const ProfiledStep& step);
  /// Sets the fields of `m` that follow from the samples. Needs the curves of collectives that run alone.
  void add_to(Measured& m) const;

 private:
  using Samples = std::vector<double>;

  std::map<std::pair<std::pair<config::Precision, std::string>, double>, Samples> computations_;  // by name and work
  std::map<double, Samples> busy_communications_;  // all-reduces beside computations, by bytes
  Samples hops_, slowed_;
};

/// Runs blocks of the workloads `gemm`, `collective` and `gpt` (steps of one layer) on all ranks of the job, each once
/// per round, for as many rounds as fit in `limit_s`, but at least one. Calls `say` with a line after each round.
/// Throws Error if a block fails or is stopped.
Measured measure(job::Job& job, const Wanted& wanted, const Device& device, double limit_s,
                 const std::function<void(const std::string&)>& say);

/// A start-up time and a rate: seconds = start_s + size / rate.
struct Line {
  double start_s = 0, rate = 0;
};
/// Fits the line with the least sum of absolute log errors, which an outlier moves little. Needs at least one point.
Line fit_line(const std::vector<config::CurvePoint>& points);

/// The measured device, and a calibration whose computations and collectives are the measured curves. Only links also
/// have a law, a start and a rate, for groups of other sizes than the measured one.
struct Calibrated {
  double memory_bytes_per_s = 0;  // the best rate of any operation that moves memory
  double link_bytes_per_s = 0;    // between ranks of a node; 0: not measured
  double node_bytes_per_s = 0;    // between nodes; 0: not measured
  config::Calibration calibration;
};

/// Throws Error if no product was measured, or nothing that moves memory.
Calibrated calibrated_by(const Measured& measured);

/// Returns the text of a hardware file with the measured device and links. Leaves out unknown properties of the device.
std::string hardware_text(const Measured& measured, const Calibrated& found);

/// Returns the text of a calibration for the hardware file `hardware`, valid for the sizes of the measured layer.
std::string calibration_text(const Measured& measured, const Calibrated& found, const Wanted& wanted,
                             const std::string& hardware);

}  // namespace harness::calibrate
