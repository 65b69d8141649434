#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/wanted.h"
#include "config/calibration.h"
#include "job/job.h"

namespace harness::calibrate {

struct ProductTime {
  config::GemmShape shape;
  double seconds = 0;

  double flop() const {
    return 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k);
  }
};

/// The device of a rank.
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
  std::map<config::Precision, std::vector<ProductTime>> products;  // by themselves, again and again
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

/// Runs blocks of the workloads `gemm`, `collective` and `gpt` (steps of one layer) on all ranks of the
/// job, each once a round, for as many rounds as fit in the time, but one at least. `say` is called with a line after
/// each round. Throws Error where a block fails or is stopped.
Measured measure(job::Job& job, const Wanted& wanted, const Device& device, double limit_s,
                 const std::function<void(const std::string&)>& say);

}  // namespace harness::calibrate
