#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "config/calibration.h"
#include "job/job.h"
#include "plan/plan.h"
#include "program/program.h"
#include "program/timeline.h"

namespace harness::calibrate {

/// The sizes to measure, between which a prediction interpolates.
struct Wanted {
  config::BackendKind backend{};
  config::Settings settings;  // of everything: what is no size
  std::vector<config::Precision> precisions;
  std::vector<config::GemmShape> products;
  std::vector<std::int64_t> message_bytes;  // ascending
  config::Model layer;                      // a model of one layer, whose steps have the other operations
  std::vector<std::int64_t> micro_batches;  // of such a step
};

/// The sizes that the cases of a sweep have.
Wanted wanted_by(const plan::Plan& plan);
/// Sizes between which a device of that kind goes from slow to as fast as it gets.
Wanted usual(config::BackendKind backend);

struct Device {
  std::string name;
  int sms = 0, compute_capability = 0;  // 90 is 9.0; 0: not known, or a CPU
  double memory_bytes = 0;              // of a rank; 0: not known
  bool nvswitch = false;                // known to be in machines whose GPUs reach each other at the full rate
};

/// Queries the device of the ranks; on backends whose ranks are GPUs, by a worker on each rank. Throws Error if a
/// worker does not start.
Device device_of(job::Job& job, const Wanted& wanted);

/// Whether there are several nodes, each with as many ranks as the others, and more than one.
bool measures_within_nodes(const std::vector<job::RankPlace>& places);

/// Medians over ranks, repetitions and rounds of what all ranks measured at once.
struct Measured {
  config::BackendKind backend{};
  int ranks = 1, nodes = 1, ranks_of_node = 1;
  std::string host;
  Device device;
  int rounds = 0;
  double took_s = 0;
  std::map<config::Precision, double> peak_flops;  // of the best product, by itself again and again
  /// Computations within a step of one layer, among other operations, by operation name: over program::work_of().
  std::map<std::pair<config::Precision, std::string>, config::Curve> computations;
  /// All ranks as one group, by operation name: over the size as the caller passes it. Empty: one rank.
  std::map<std::string, config::Curve> communications;
  /// As `communications`, but the ranks of each node are a group, all nodes at once. Empty where
  /// measures_within_nodes() is false.
  std::map<std::string, config::Curve> within_node;
  double hop_s = 0;             // from the end of what an operation waits for on another stream to its own start
  double step_s = 0;            // of an almost empty step, beside its operations
  double slowed_computing = 1;  // computations beside a communication take so many times as long
  double slowed_communicating = 1;
  std::int64_t largest_message_bytes = 0;
};

struct ProfiledStep {
  const program::Program& program;
  std::vector<program::Interval> intervals;

  double seconds(program::OperationId id) const { return intervals[id].end_s - intervals[id].start_s; }
};

/// Collects samples of operations within a step from the profiled steps of all ranks and rounds.
class StepSamples {
 public:
  /// Adds the durations of computations that run alone, and by how much computations and concurrent all-reduces slow
  /// each other down.
  void take_computations(const ProfiledStep& step, config::Precision precision);
  /// Adds the delays from the end of an operation's dependency on another stream to its own start.
  void take_hops(const ProfiledStep& step);
  /// Sets the fields of `m` that follow from the samples. Needs the curves of collectives that run alone.
  void add_to(Measured& m) const;

 private:
  using Samples = std::vector<double>;

  std::map<std::tuple<config::Precision, std::string, double>, Samples> computations_;  // by name and work
  std::map<double, Samples> busy_communications_;  // all-reduces beside computations, by bytes
  Samples hops_, slowed_;
};

/// Runs blocks of the workloads `gemm`, `collective` and `gpt` (steps of one layer) on all ranks of the
/// job, each once a round, for as many rounds as fit in the time, but one at least. `say` is called with a line after
/// each round. Throws Error where a block fails or is stopped.
Measured measure(job::Job& job, const Wanted& wanted, const Device& device, double limit_s,
                 const std::function<void(const std::string&)>& say);

/// A start and a rate: seconds = start_s + size / rate.
struct Line {
  double start_s = 0, rate = 0;
};
/// The line with the least sum of relative errors, each with its weight 1: a point that is far off moves it little.
/// Needs a point.
Line fit_line(const std::vector<config::CurvePoint>& points);

/// The device as it was measured, and a calibration whose computations and collectives are the measured curves. Only
/// links have a law beside them, a start and a rate, for groups of other sizes than the measured one.
struct Calibrated {
  double memory_bytes_per_s = 0;  // the best of what moves memory
  double link_bytes_per_s = 0;    // between ranks of a node; 0: not measured
  double node_bytes_per_s = 0;    // between nodes; 0: not measured
  config::Calibration calibration;
};

/// Throws Error if no product was measured, or nothing that moves memory.
Calibrated calibrated_by(const Measured& measured);

/// The text of a hardware file: the device and the links as they were measured. What nobody told of the device is left
/// out.
std::string hardware_text(const Measured& measured, const Calibrated& found);

/// The text of a calibration that names that file, `hardware`, with its layer's sizes as the range that was measured.
std::string calibration_text(const Measured& measured, const Calibrated& found, const Wanted& wanted,
                             const std::string& hardware);

}  // namespace harness::calibrate
