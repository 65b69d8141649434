#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/text.h"
#include "job/job.h"
#include "plan/plan.h"
#include "program/links.h"
#include "store/result.h"
#include "sweep/recorder.h"

namespace harness::sweep {

/// The use of the machine by a case: its ranks, which all run matrix products at once, the threads of each, the threads
/// that its data loader takes from them, and the precision.
struct PeakSetup {
  int ranks = 1;
  int threads = 0;  // 0: each rank's share of its node's cores
  int loader_threads = 0;
  config::Precision precision = config::Precision::fp32;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 that a default <=> compares with for a pointer.
  auto operator<=>(const PeakSetup&) const = default;
};

/// Keeps the highest measured rate of matrix products of each set-up. Other load can only lower a measurement, so the
/// best one counts: it is a lower bound of the peak, which further measurements can only raise.
class Peaks {
 public:
  /// `samples`: of one probe block, by rank.
  void add(const PeakSetup& setup, const std::vector<job::Samples>& samples);
  /// FLOP/s per rank of the case, the mean over its ranks; 0: not measured.
  double of(const plan::PlannedCase& planned) const;

 private:
  std::map<PeakSetup, double> best_;  // the mean over the ranks
};

/// The node of every rank of a job.
machine::Topology topology_of(const std::vector<job::RankPlace>& places);

/// The machine, as reported by the first worker of every rank.
struct Machine {
  std::string device;                  // the GPU model of all ranks; "" on cpu
  NameValues identity;                 // library versions, CPU or GPU model: equal on all ranks
  NameValues environment;              // rank 0's variables that may be published
  std::vector<job::RankPlace> places;  // by rank
  std::vector<std::string> warnings;
  Peaks peaks;  // reached by these workers, with all cores of their nodes

  machine::Topology topology() const { return topology_of(places); }
};

/// Starts one worker on every rank, checks that all ranks have the same program, libraries and devices, and measures
/// the rate of matrix products once. Throws Error that names the ranks that differ, two ranks on one GPU, or an
/// environment that contradicts the configuration.
Machine probe(job::Job& job, const plan::Plan& plan);

/// Returns a line for every name whose value differs between ranks: "oneDNN: 3.1 on 7 ranks, but 2.6.3 on rank 3
/// (node7)". Takes the most frequent value as correct; a missing name counts as "absent". `places` by rank.
std::vector<std::string> compare_identities(const std::vector<NameValues>& by_rank,
                                            const std::vector<job::RankPlace>& places);

/// Throws Error if a rank has no GPU, or if a node has fewer GPUs than ranks and `share_gpus` is not set. Nodes whose
/// GPUs cannot be listed pass: their workers report errors. `config`: the sweep's path, which the error message names;
/// "": it is no sweep, so what helps a sweep is left out.
void require_gpus(const std::vector<job::RankPlace>& places, bool share_gpus, const std::string& config);

/// Runs one probe block for each set-up of the plan's cases, about a second each, and adds the rates to `peaks`. Ends
/// early at a stop request or at the end of the allocation; a failed block leaves the peaks unchanged. Does nothing if
/// the configuration states the peak.
void measure_peaks(job::Job& job, const plan::Plan& plan, Peaks& peaks);

// Upper limits of the machine, to compare measurements with.

/// Writes peak_source, memory_bytes_per_s and, if the configuration states it, peak_flops_per_rank of every possible
/// case. A configured peak counts per accelerator.
void fill_peaks(store::Result& result, const plan::Plan& plan);

/// Raises the peaks of the cases to the measured ones, unless the configuration states them. Never lowers a peak,
/// because an earlier session may have measured a quieter machine.
void raise_peaks(Recorder& recorder, const plan::Plan& plan, const Peaks& peaks);

/// Writes link_source and the bandwidth limit of every operation.
void fill_link_limits(store::Result& result, const plan::Plan& plan, const Machine& machine);

/// The memory that a rank of a case may use: on GPUs, as stated in the hardware file; on cpu, the smallest share of any
/// rank in its node's memory.
plan::DeviceMemory memory_of(const config::Experiment& experiment, const plan::PlannedCase& planned,
                             const Machine& machine);

/// The links that carry a case's messages, as far as the configuration or the hardware file states them.
program::Links links_of(const config::Experiment& experiment, const plan::PlannedCase& planned);

}  // namespace harness::sweep
