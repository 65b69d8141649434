#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "analysis/cases.h"
#include "analysis/estimator.h"
#include "analysis/verdict.h"
#include "store/result.h"

namespace harness::analysis {

/// How fast one operation was, in the terms of nccl-tests.
struct Rates {
  std::string operation;
  double operation_seconds = 0;           // the step's time / repetitions
  double bytes = 0;                       // of one operation
  std::int64_t count = 0;                 // of one collective, as nccl-tests counts it; 0: not known
  double algorithm_bytes_per_s = 0;       // bytes / time
  std::optional<double> bus_bytes_per_s;  // of a collective
  std::optional<double> limit_bytes_per_s;
  /// Faster than the links can carry it or the peak can compute it, so something else was measured.
  bool impossible = false;
};

/// The measured values of one case and the verdict about it.
struct CaseSummary {
  std::int32_t case_index = 0;
  store::CaseRole role = store::CaseRole::change;
  std::string name;
  store::CaseStatus status = store::CaseStatus::pending;
  bool honoured = true;            // NCCL did what the case asked for, as far as it says
  bool another_training = false;   // asked for: other batches, say
  std::string trains_differently;  // without being asked to; why that is known; "": it trains as the baseline does
  int blocks = 0;                  // finished ones
  double step_seconds = 0;         // median over blocks of the block median; NaN if none
  double tokens_per_second = 0, flops_per_rank = 0;
  std::optional<double> mfu, mfu_noncausal, hfu;
  std::optional<Tails> tails;  // of its steps
  double peak_memory_bytes = 0;
  /// Against the baseline; absent for the baseline itself and without pairs. Of the time per unit of work (token, byte
  /// on the bus, FLOP), which is the step time's effect where all steps hold the same work.
  std::optional<Effect> effect;
  Judgement judgement;    // the effect's verdict, or why there is none
  int settled_after = 0;  // rounds, of the look at which the verdict was settled; 0: by none of several
  double first_loss = 0;  // of the first step, warm-up or not, of the first block
  double last_loss = 0;   // of the last timed step: mean over the finished blocks
  // Means over blocks of NVML's samples during the timed steps; NaN where there are none.
  double gpu_utilisation = 0, sm_clock_hz = 0, power_w = 0, tokens_per_joule = 0;
  std::optional<Rates> rates;  // of the operation that the step repeats, where it is one
  std::string reason;
};

/// Whether the verdict about a change is open. The control is not asked about: its interval shows the noise, and a
/// sweep takes no rounds for it.
bool is_unresolved(const CaseSummary& row);
/// Whether a change has fewer blocks than a verdict needs.
bool has_too_few_rounds(const CaseSummary& row);
/// Whether more rounds could say more: a change that runs, and that is unresolved or has had too few rounds.
bool needs_rounds(const CaseSummary& row);
/// Whether the sweep proves that this change makes the step faster, per unit of its work. An unreliable sweep proves
/// nothing: ask that first.
bool is_proven(const CaseSummary& row);
/// Whether the sweep proves that this change makes the step faster and leaves the training what it is.
bool is_improvement(const CaseSummary& row);

/// A block that failed although its case went on.
struct LostBlock {
  std::int32_t case_index = 0, round = 0;
  std::string reason;
};

struct Summary {
  std::vector<CaseSummary> cases;                           // in file order
  bool partial = false;                                     // not every planned block is there
  bool unreliable = false;                                  // the control moved: its verdict is faster or slower
  std::optional<Effect> control;                            // its effect; at the first size at which it moved, if any
  double noise = std::numeric_limits<double>::quiet_NaN();  // standard deviation of the control's log ratios at the
                                                            // baseline's size; NaN with fewer than two
  bool predicted = false;                                   // steps in virtual time: nothing in it is proven
  std::vector<Look> looks;                                  // that have taken place
  /// One for the baseline and, of an operation, one for each further size; none where there is no level to estimate.
  std::vector<LevelFindings> levels;
  int failed_cases = 0;
  std::vector<LostBlock> lost;                 // in the order of the file
  std::vector<std::int32_t> throttled_rounds;  // flagged, not left out
  std::vector<std::string> warnings;           // each with a remedy

  /// The summary of the case that a row of any table is about.
  const CaseSummary& at(const store::AboutACase auto& row) const { return case_at(row.case_index); }
  const CaseSummary& case_at(std::int32_t case_index) const { return cases[static_cast<std::size_t>(case_index)]; }
  /// The changes that a predicted sweep predicts to be faster, the fastest first, as proven_changes().
  std::vector<const CaseSummary*> predicted_changes() const;
  /// nullptr if there is none.
  const CaseSummary* baseline() const;
  /// The improvements, the fastest first. A change of the ranks, a combination and a case that failed later are among
  /// them: not everyone wants those.
  std::vector<const CaseSummary*> proven_changes() const;
};

/// An estimate and what decide() makes of it; nothing without a pair.
std::optional<Effect> effect_of(const Estimate& estimate, double smallest_effect, const Evidence& evidence);

/// Throws Error if the file's verdicts rest on what this program does not know (estimator.h).
Summary summarise(const store::Result& result);

/// 0: fine; 4: a case failed, blocks were lost and a change has too few for a verdict, or the control moved.
int exit_code(const Summary& summary);

/// A clock or a peak may be a little off; what exceeds a limit by a twentieth did something else.
inline constexpr double beyond_doubt = 1.05;

/// More model FLOP/s than the peak allows, so the peak is not the peak, or something else was timed.
inline bool above_peak(const CaseSummary& row) {
  return row.mfu && *row.mfu > beyond_doubt;
}

// A sweep of one operation at several sizes: each size has a rate, and none is better.

/// Whether there are several sizes and no change of a setting, so that nothing is compared.
bool sweeps_sizes_alone(const store::Result& result);
/// Whether settings are compared at several sizes.
bool is_grid(const store::Result& result);

/// The baseline at all sizes, the smallest first; sizes that cannot run, whose bytes the file does not know, come last.
std::vector<const CaseSummary*> by_size(const store::Result& result, const Summary& summary);

/// The mean of the bus bandwidths of these sizes, as the last line of nccl-tests has it. Nothing where fewer than two
/// were measured.
std::optional<double> average_bus_bandwidth(const store::Result& result, const Summary& summary);

/// The blocks of a case that failed. A wrong result fails its block; so does whatever ends a block before its check.
int failed_blocks(const store::Result& result, std::int32_t case_index);

// Warnings of a summary: what a reader should know before believing a result. Each comes with a remedy.

using Warnings = std::vector<std::string>;

/// Adds all of them. Those that `summary` has are not read.
void find_warnings(const store::Result& result, const Summary& summary, Warnings& warnings);
/// Those about other processes that kept the machine busy while the sweep ran, and about changes of its speed.
void machine_warnings(const store::Result& result, const Summary& summary, Warnings& warnings);
/// Those about the objections of the level model's guards; none where no level was estimated.
void level_warnings(const store::Result& result, const Summary& summary, Warnings& warnings);

/// Counts the blocks in which a figure is too high, among those that know it, and keeps the one in which it is highest.
struct Exceeded {
  int known = 0, blocks = 0;
  double most = 0;
  std::size_t worst = 0;  // of Result::blocks

  void count(std::size_t block, double value, double limit);
  bool is_news() const;
};
/// Cores that processes of others kept busy, and CPU time that a host gave to other guests.
Exceeded foreign_use(const store::Result& result);
Exceeded stolen_time(const store::Result& result);

}  // namespace harness::analysis
