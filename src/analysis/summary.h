#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/cases.h"
#include "analysis/estimator.h"
#include "analysis/verdict.h"
#include "store/result.h"

namespace harness::analysis {

/// The rates of one operation, in the terms of nccl-tests.
struct Rates {
  std::string operation;
  double operation_seconds = 0;           // the step's time / repetitions
  double bytes = 0;                       // size of one operation
  std::int64_t count = 0;                 // elements of one collective, as nccl-tests counts them; 0: not known
  double algorithm_bytes_per_s = 0;       // bytes / time
  std::optional<double> bus_bytes_per_s;  // collectives only
  std::optional<double> limit_bytes_per_s;
  /// Faster than the links can carry or the peak can compute, so something else was measured.
  bool impossible = false;
};

/// The measured values of one case and its verdict.
struct CaseSummary {
  std::int32_t case_index = 0;
  store::CaseRole role = store::CaseRole::change;
  std::string name;
  store::CaseStatus status = store::CaseStatus::pending;
  bool honoured = true;            // NCCL did what the case asked for, as far as it reports
  bool another_training = false;   // the case asks for another training, such as other batches
  std::string trains_differently;  // why, if it was not asked for; "": it trains as the baseline does
  int blocks = 0;                  // finished blocks
  double step_seconds = 0;         // median over blocks of the block median; NaN if none
  double tokens_per_second = 0, flops_per_rank = 0;
  std::optional<double> mfu, mfu_noncausal, hfu;
  std::optional<Tails> tails;  // tail percentiles of its steps
  double peak_memory_bytes = 0;
  /// Against the baseline; absent for the baseline itself and without pairs. Compares time per unit of work (token,
  /// byte on the bus, FLOP), which equals step time if all steps hold equal work.
  std::optional<Effect> effect;
  Judgement judgement;    // the effect's verdict, or the reason for none
  int settled_after = 0;  // rounds of the look that settled the verdict; 0: not settled, or a single look
  double first_loss = 0;  // loss of the first step of the first block, warm-up included
  double last_loss = 0;   // loss of the last timed step: mean over the finished blocks
  // Medians over blocks of NVML's samples, averaged within each block's timed steps; NaN where there are none.
  double gpu_utilisation = 0, sm_clock_hz = 0, power_w = 0, tokens_per_joule = 0;
  std::optional<Rates> rates;  // rates of the operation that the step repeats, if it does
  std::string reason;
};

/// Whether a change's verdict is unresolved. False for the control, which only shows the noise: a sweep spends no
/// rounds on it.
bool is_unresolved(const CaseSummary& row);
/// Whether a change has fewer blocks than a verdict needs.
bool has_too_few_rounds(const CaseSummary& row);
/// Whether more rounds could help: a change that runs, and that is unresolved or has had too few rounds.
bool needs_rounds(const CaseSummary& row);
/// Whether the sweep proves this change faster per unit of work. False for a case that failed after it had been faster,
/// because nobody can train with it. An unreliable sweep proves nothing: ask that first.
bool is_proven(const CaseSummary& row);
/// Whether the sweep proves that this change makes the step faster without changing the training.
bool is_improvement(const CaseSummary& row);

/// A block that failed while its case went on.
struct LostBlock {
  std::int32_t case_index = 0, round = 0;
  std::string reason;
};

struct Summary {
  std::vector<CaseSummary> cases;   // in file order
  bool partial = false;             // a planned block is missing
  bool unreliable = false;          // the control moved: its verdict is faster or slower
  std::optional<Effect> control;    // its effect; at the first size at which it moved, if any
  double noise = store::not_known;  // standard deviation of the control's log ratios at the
                                    // baseline's size; NaN with fewer than two
  bool predicted = false;           // steps in virtual time, which prove nothing
  std::vector<Look> looks;          // looks that have taken place
  /// One for the baseline and, for an operation, one for each further size; none if no level was estimated.
  std::vector<LevelFindings> levels;
  int failed_cases = 0;
  std::vector<LostBlock> lost;                 // in the order of the file
  std::vector<std::int32_t> throttled_rounds;  // flagged, not excluded
  std::vector<std::string> warnings;           // each with a remedy

  /// Returns the summary of the case that a row of any table refers to.
  const CaseSummary& at(const store::AboutACase auto& row) const { return case_at(row.case_index); }
  const CaseSummary& case_at(std::int32_t case_index) const { return cases[static_cast<std::size_t>(case_index)]; }
  /// Returns nullptr if there is none.
  const CaseSummary* baseline() const;
  /// Returns the improvements, fastest first: those that are proven or, in a predicted sweep, the predicted ones.
  /// Includes changes of the ranks and combinations, which not every caller wants.
  std::vector<const CaseSummary*> improvements() const;
};

/// Combines an estimate with its verdict from decide(); nothing without a pair.
std::optional<Effect> effect_of(const Estimate& estimate, double smallest_effect, const Evidence& evidence);

/// Throws Error if the file's verdicts rest on an estimator that this program does not know (estimator.h).
Summary summarise(const store::Result& result);

/// Returns 4 if a case failed, blocks were lost and a change has too few for a verdict, or the control moved; else 0.
int exit_code(const Summary& summary);

/// Tolerance for inexact clocks and peaks: exceeding a limit by a twentieth means that something else was measured.
inline constexpr double beyond_doubt = 1.05;

/// Whether the case has more model FLOP/s than the peak allows: the peak is wrong, or something else was timed.
inline bool above_peak(const CaseSummary& row) {
  return row.mfu && *row.mfu > beyond_doubt;
}

// A sweep of one operation at several sizes: each size has its own rate, and none is better.

/// Whether there are several sizes but no change of a setting, so that nothing is compared.
bool sweeps_sizes_alone(const store::Result& result);
/// Whether settings are compared at several sizes.
bool is_grid(const store::Result& result);

/// Returns the baseline at all sizes, smallest first. Sizes that cannot run come last: the file lacks their bytes.
std::vector<const CaseSummary*> by_size(const store::Result& result, const Summary& summary);

/// Returns the mean bus bandwidth over the sizes, like the last line of nccl-tests. Nothing if fewer than two have one.
std::optional<double> average_bus_bandwidth(const store::Result& result, const Summary& summary);

/// Counts a case's failed blocks. A wrong result fails its block, as does anything that ends a block before its check.
int failed_blocks(const store::Result& result, std::int32_t case_index);

// Warnings of a summary: reasons to doubt a result. Each comes with a remedy.

using Warnings = std::vector<std::string>;

/// Appends all warnings. Does not read summary.warnings.
void find_warnings(const store::Result& result, const Summary& summary, Warnings& warnings);
/// Appends those about other processes that kept the machine busy during the sweep, and about changes of its speed.
void machine_warnings(const store::Result& result, const Summary& summary, Warnings& warnings);
/// Appends those about the objections of the level model's guards; none if no level was estimated.
void level_warnings(const store::Result& result, const Summary& summary, Warnings& warnings);

/// Counts the blocks in which a figure exceeds its limit, among those that know it, and keeps the highest.
struct Exceeded {
  int known = 0, blocks = 0;
  double most = 0;
  std::size_t worst = 0;  // index in Result::blocks

  void count(std::size_t block, double value, double limit);
  bool is_news() const {
    constexpr double few = 0.1;
    return blocks > few * known;
  }
};
/// Returns the use of cores by other processes, and the CPU time that the host gave to other guests.
Exceeded foreign_use(const store::Result& result);
Exceeded stolen_time(const store::Result& result);

}  // namespace harness::analysis
