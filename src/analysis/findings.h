#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/breakdown.h"
#include "analysis/summary.h"
#include "base/part.h"
#include "config/experiment.h"
#include "program/links.h"
#include "store/result.h"

namespace harness::analysis {

/// The duration and price of a whole training run at the token rate of one case.
struct CaseCost {
  std::string name;
  int ranks = 0;
  double tokens_per_second = 0;  // measured or predicted
  double duration_s = 0;         // for a change: the baseline's duration times the effect
  double price = 0;
};

/// A case proven faster (in a prediction: predicted faster), against the baseline. Based on the effect's centre and
/// interval, as is the verdict, not on the quotient of two printed rates. low and high belong to the ends of the
/// interval; low saves least.
struct CaseSaving {
  CaseCost after;
  double gpus_recovered = 0, gpus_low = 0, gpus_high = 0;  // extra GPUs that would achieve the same without the change
  double saved_share = 0, saved_share_low = 0, saved_share_high = 0;  // share of the price of a token
  double saved_run = 0;                                               // saved on the price of the run
  double saved_yearly = 0;  // saved per year of continuous use of the baseline's GPUs
};

struct CostEstimate {
  config::Cost cost;
  int steps = 0;          // timed steps in all finished blocks of the baseline
  double confidence = 0;  // confidence of the effects' intervals
  bool ranks_are_gpus = true;
  bool predicted = false;         // nothing was measured; `after` holds predicted improvements, without intervals
  CaseCost before;                // the baseline
  std::vector<CaseSaving> after;  // cheapest token first; empty: nothing is faster
};

/// Returns nothing if the baseline was not measured or its tokens are unknown. `after` is empty for an unreliable
/// sweep, which proves nothing. A rank counts as a GPU; on backends without GPUs, the price is per rank.
std::optional<CostEstimate> estimate_cost(const store::Result& result, const Summary& summary,
                                          const config::Cost& cost);

// Stragglers. All ranks end a step together, so their step times are equal: early ranks wait in a collective for late
// ones. The splits of the profiled steps reveal the late rank: it spends least time in communication, that is, waiting.

struct Straggler {
  std::int32_t rank = 0;
  std::string host = {}, device = {};
  std::int32_t late_cases = 0;  // cases in whose profiled step it was late
  // Its own time (the step without communication) beyond the median of the other ranks that do equal work: mean over
  // all profiled cases; may be negative.
  double late_s = 0;
  double late_share = 0;             // late_s as a share of the step
  double compute_s = 0, idle_s = 0;  // parts of late_s: more computing, and more idling (host)
  bool named = false;                // identified as late, not merely among the latest
};

struct Stragglers {
  std::vector<Straggler> ranks;    // worst first, at most 16; empty if no profiled step tells
  std::vector<double> late_share;  // by rank, as Straggler::late_share; NaN: no step tells; empty if `ranks` is
  std::string evidence;            // the basis, in whole sentences
  std::int32_t cases = 0;          // profiled steps looked at
  bool found() const { return !ranks.empty() && ranks.front().named; }
};

/// Takes linear time in the splits, except for sorting.
Stragglers find_stragglers(const store::Result& result);

/// One step down from the peak (points > 0 are lost) or, rarely, up.
struct WaterfallBar {
  std::string name;              // "matrix products below peak", "waiting for slower ranks"
  std::optional<Part> part;      // its part in the breakdown; none: "profiled step differs from the timed ones"
  double points = 0;             // share of the peak: 0.12 is 12 points of MFU
  double seconds = 0;            // time of the part, mean over ranks
  std::optional<double> roof_s;  // time at the machine's limit; absent: the limit is not known
  std::string roof;              // the limit: "peak FLOP/s", "memory bandwidth", "stated links, hidden or not" …
};

/// From 100 % of the peak to the measured MFU: 1 = mfu + sum of points, exactly.
struct Waterfall {
  double mfu = 0;
  double step_s = 0;   // the step that the MFU refers to
  bool timed = false;  // true: step_s is of timed steps; false: of the profiled one, as no block finished
  double ideal_s = 0;  // the model's FLOP at peak
  std::optional<double> gpu_utilisation;  // as NVML reports it, to show beside MFU
  std::vector<WaterfallBar> bars;         // in this order from the top; absent parts have none
};

/// Returns nothing without a peak or a timeline.
std::optional<Waterfall> waterfall(const store::Result& result, const CaseSummary& summary,
                                   const CaseBreakdown& breakdown);

enum class BottleneckKind : std::uint8_t {
  none,  // nothing known
  loading,
  communication,
  compute,  // products and attention below their roof
  memory,   // other computation, bound by memory bandwidth
  host,
  bubble,
  stragglers,
};
const char* name_of(BottleneckKind kind);

/// A variable of the registry that acts on parts of the step.
struct Lever {
  std::string variable;
  double share = 0;          // share of the step that these parts take
  double lost = 0;           // share of the step that they are known to lose
  std::string acts_on = {};  // "computation, data communication"
};

struct Bottleneck {
  BottleneckKind kind = BottleneckKind::none;
  double share = 0;           // share of the step lost to it: beyond the roof if that is known, else all of its time
  std::string evidence;       // in whole sentences
  std::vector<Lever> levers;  // largest first
};
Bottleneck find_bottleneck(const store::Result& result, const CaseBreakdown& breakdown, const Waterfall* waterfall,
                           const Stragglers& stragglers);

// Compares a result with a prediction of the same job on hardware that performs as specified, which tells a slow
// cluster from a slow configuration. src/explain computes the comparison; these are the values that reports show.
// docs/diagnosis.md defines them.

/// One kind of operation: seconds per step, means over the ranks. Communication times exclude waiting for other ranks.
struct KindCompared {
  std::string kind, group;  // "all_reduce", "data"; computations have no group
  bool recomputed = false;
  double measured_takes_s = 0, predicted_takes_s = 0;  // total duration, hidden or exposed
  double measured_owns_s = 0, predicted_owns_s = 0;    // seconds of the step that the parts attribute to them

  double excess_s() const { return measured_owns_s - predicted_owns_s; }
};

/// The parts of a step that are not operations: waiting, bubble, loading, idle.
struct PartCompared {
  Part part = Part::idle;
  double measured_s = 0, predicted_s = 0;

  double excess_s() const { return measured_s - predicted_s; }
};

/// One case. On both sides, the kinds' owned time and the parts add up to the step.
struct CaseCompared {
  std::int32_t case_index = 0;
  double measured_s = 0, predicted_s = 0;  // step time of the profiled step
  std::vector<KindCompared> kinds;         // the largest excess first
  std::vector<PartCompared> parts;         // likewise
};

/// A fault of the cluster that the measured step looks like.
struct Cause {
  std::string fault;  // as in `faults` of a configuration: "slow_link"
  std::string words;  // "node 5 has 50 % of its network"
  /// Causes that look (nearly) the same, best first: as in `faults`, and in words.
  std::vector<std::pair<std::string, std::string>> or_else;
  std::vector<std::string> checks;  // doctor's checks that tell these apart or, without or_else, detect the cause
  std::string confirmed_by;         // doctor's finding in the same file: "pcie.width"; "": none
  double with_s = 0;                // predicted step with this cause and those before it
  double explains = 0;              // share of the previously unexplained time
};

struct Diagnosis {
  std::int32_t case_index = 0;  // the case examined
  double measured_s = 0, healthy_s = 0;
  double explained_s = 0;       // predicted step with all causes
  double compute_factor = 1;    // common factor of all ranks' computation times over the prediction
  double margin = 0;            // share of the step: a smaller excess is not attributed to a cause
  bool error_is_known = false;  // the margin comes from the expected error of predicted steps
  std::vector<Cause> causes;    // most plausible first; empty: none is named
};

/// A case with a profiled step but no prediction.
struct CaseNotPredicted {
  std::int32_t case_index = 0;
  std::string why;
};

struct Explanation {
  std::string why_none;  // a sentence if no case has a prediction, else ""
  std::string hardware, calibration;
  bool of_prediction = false;       // the result is itself a prediction, with the faults of its configuration
  std::vector<CaseCompared> cases;  // cases with a profiled step and a prediction, in order
  std::vector<CaseNotPredicted> not_predicted;  // in order
  std::optional<Diagnosis> diagnosis;           // for the baseline
  std::string why_no_diagnosis;                 // a sentence; "": there is a diagnosis, or why_none says it
};

/// The findings about one profiled step of a case.
struct StepFindings {
  CaseBreakdown breakdown;
  std::optional<Waterfall> waterfall;
  Bottleneck bottleneck;
  program::Spans spans;  // nodes that the case's groups span
  std::int32_t case_index = 0;
};

/// Everything that the analysis finds in a result, computed once for all reports, pages and tables.
struct Findings {
  Summary summary;
  std::optional<std::int32_t> best_case;       // index of best()
  std::optional<std::int32_t> best_reference;  // index of the case that best() is compared with
  std::vector<StepFindings> steps;             // one per case with a timeline, in order of cases
  Stragglers stragglers;
  std::optional<CostEstimate> cost;        // if there is a price; filled by the caller
  std::optional<Explanation> explanation;  // if the caller asked `explain` for one

  /// Returns the baseline (for an operation, at the size of best()) if it was measured, else nullptr.
  const CaseSummary* baseline() const;
  /// Returns the largest proven improvement (in a predicted sweep, the largest predicted one). nullptr if there is
  /// none, or if the control moved, so that no verdict counts. A change of the number of ranks is excluded: it shows
  /// how the step scales.
  const CaseSummary* best() const { return best_case ? &summary.case_at(*best_case) : nullptr; }
  /// Returns baseline() and best(), without those that are nullptr.
  std::vector<const CaseSummary*> before_and_after() const {
    std::vector<const CaseSummary*> both{baseline(), best()};
    std::erase(both, nullptr);
    return both;
  }
  /// Returns nullptr if the case has no timeline.
  const StepFindings* step_of(const store::AboutACase auto& row) const { return step_of_case(row.case_index); }
  const StepFindings* step_of_case(std::int32_t case_index) const {
    const auto found = std::ranges::find(steps, case_index, &StepFindings::case_index);
    return found == steps.end() ? nullptr : &*found;
  }
};

/// Uses the timeline and rank_seconds if the result holds them.
Findings find_all(const store::Result& result);

}  // namespace harness::analysis
