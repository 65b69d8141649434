#pragma once

#include <compare>
#include <map>
#include <vector>

#include "job/job.h"
#include "plan/plan.h"
#include "plan/prepare.h"
#include "program/links.h"
#include "store/result.h"
#include "sweep/recorder.h"

namespace harness::sweep {

struct Machine;  // sweep/probe.h

/// The set-up of a peak measurement: ranks that multiply matrices at once, threads of each, and precision.
struct PeakSetup {
  int ranks = 1;
  int threads = 0;  // 0: each rank's share of its node's cores
  config::Precision precision = config::Precision::fp32;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 that a default <=> compares with for a pointer.
  auto operator<=>(const PeakSetup&) const = default;
};

/// Keeps the highest rate of matrix products measured so far on each node. Other work on a machine can only slow a
/// measurement down, so the best one counts: a lower bound of the peak, which every further measurement can raise and
/// none can lower.
class Peaks {
 public:
  explicit Peaks(std::vector<job::RankPlace> places) : places_(std::move(places)) {}

  /// The set-up in which the case runs.
  PeakSetup setup_of(const plan::PlannedCase& planned) const;
  /// `samples`: of one probe block on the first setup.ranks ranks, by rank.
  void add(const PeakSetup& setup, const std::vector<job::Samples>& samples);
  /// FLOP/s of a rank of the case, the mean over its ranks; 0: nothing was measured in its precision. What the same
  /// ranks and threads reached, or its threads' part of what its nodes reached with any others, whichever is more: the
  /// cores that a case leaves idle slow the others down if anything, so neither is more than it could reach.
  double of(const plan::PlannedCase& planned) const;

 private:
  using ByNode = std::map<int, double>;  // FLOP/s of all its ranks together
  int local_ranks(int node, int first_ranks) const;
  int default_threads(const job::RankPlace& place, int ranks) const;
  double share(const PeakSetup& setup, const job::RankPlace& place) const;

  std::vector<job::RankPlace> places_;
  std::map<PeakSetup, ByNode> alike_;           // the best of equal measurements
  std::map<config::Precision, ByNode> of_any_;  // the best of all
};

/// Whether the configuration leaves the peak to be measured.
bool measures_peaks(const config::Experiment& experiment);

/// One probe block for each way in which the cases of the plan use ranks, threads and precision, adding what it
/// reached: a second or so each. Ends early at a stop request or at the end of the allocation; a block that fails
/// leaves the peaks as they are. Does nothing if the configuration says what the peak is.
void measure_peaks(job::Job& job, const plan::Plan& plan, Peaks& peaks);

// Upper limits of the machine, to compare with what is measured on it.

/// Writes peak_source, memory_bytes_per_s and, where the configuration says it, peak_flops_per_rank of every possible
/// case. A configured peak counts per accelerator.
void fill_peaks(store::Result& result, const plan::Plan& plan);

/// Raises the peaks of the cases to what was measured so far, unless the configuration says what they are. No peak
/// falls: an earlier session may have seen the machine at a quieter moment.
void raise_peaks(Recorder& recorder, const plan::Plan& plan, const Peaks& peaks);

/// Writes link_source and the limit of every point of operation.
void fill_link_limits(store::Result& result, const plan::Plan& plan, const Machine& machine);

/// The memory that a rank of a case may use: on GPUs the memory stated in the hardware file; on cpu the smallest share
/// that a rank has of its node's memory.
plan::DeviceMemory memory_of(const config::Experiment& experiment, const plan::PlannedCase& planned,
                             const Machine& machine);

/// The links that carry a case's messages, as far as the configuration or the hardware file states them.
program::Links links_of(const config::Experiment& experiment, const plan::PlannedCase& planned);

}  // namespace harness::sweep
