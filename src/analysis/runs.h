#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "analysis/differences.h"
#include "analysis/statistics.h"
#include "analysis/summary.h"

namespace harness::analysis {

// Where the run is the unit: each run gives one number, and the spread of the runs carries the interval.

/// Fewer runs give a number without an interval.
inline constexpr std::size_t runs_for_an_interval = 3;

/// What a run says of a change: the logarithm of its time to that of the run's own baseline, by the interval that the
/// file declares. Nothing where the run has no pair of blocks, where NCCL did something else than the case asked for,
/// and where the time is beyond the limit of the hardware.
std::optional<double> log_ratio_of(const CaseSummary& row);

/// Student's t interval of the mean of these, one value per run, at confidence 1 - alpha. Nothing is trimmed: five runs
/// without their extremes would leave 2 degrees of freedom, and a wider interval than four runs have. Below
/// runs_for_an_interval there is a centre alone, without runs nothing.
ConfidenceInterval interval_over_runs(std::span<const double> log_ratios, double alpha);

/// The strictest confidence that any of the files declares: what is said of all of them must satisfy each.
double strictest_confidence(std::span<const ComparedFile> files);

/// Throws Error if a run is there twice: it would count as two.
void refuse_copies(std::span<const ComparedFile> files);

}  // namespace harness::analysis
