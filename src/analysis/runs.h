#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/differences.h"
#include "analysis/statistics.h"
#include "analysis/summary.h"
#include "analysis/verdict.h"

namespace harness::analysis {

// Where the run is the unit: each run gives one number, and the spread of the runs carries the interval.

/// Fewer runs give a number without an interval.
inline constexpr std::size_t runs_for_an_interval = 3;

/// A run's result for a change: the logarithm of its time to that of the run's own baseline, by the interval that the
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

/// Whether a change does on one cluster what it did on another.
enum class Reproduced {
  yes,        // faster on both, slower on both, or the same on both
  no,         // moved on one, proven not to move on the other
  opposite,   // faster on one, slower on the other
  undecided,  // no verdict on one side
};
const char* name_of(Reproduced reproduced);

/// A change's step time over its own baseline's, on one side.
struct SideChange {
  Verdict verdict = Verdict::none;
  double ratio = std::numeric_limits<double>::quiet_NaN();
  double low = std::numeric_limits<double>::quiet_NaN(), high = std::numeric_limits<double>::quiet_NaN();
  int n = 0;  // rounds of one run, or runs
};

struct ChangeReproduction {
  std::string name;  // variable=value
  SideChange first, second;
  Reproduced reproduced = Reproduced::undecided;
};

struct Reproduction {
  std::vector<std::string> first, second;  // labels
  bool first_by_runs = false, second_by_runs = false;
  double first_confidence = 0, second_confidence = 0;  // of a side's intervals together: the strictest of its files
  std::vector<ChangeReproduction> changes;
  std::vector<std::string> only_in_one;  // a sentence each
};

/// Changes that both sides made, by variable and value; the baselines need not be alike, since each effect is against
/// its own. A side of one run has that run's interval; one of three or more has the t interval of its runs' log ratios,
/// over all changes together (Bonferroni). Throws Error for a side of two, and if a run is on one side twice.
Reproduction reproduce(std::span<const ComparedFile> first, std::span<const ComparedFile> second);

}  // namespace harness::analysis
