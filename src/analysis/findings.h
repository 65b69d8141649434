#pragma once

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

/// Rules of thumb that practitioners use: a sentence for each rule that applies to a step, with the numbers that made
/// it apply. None of them proves anything; each tells where to look.
std::vector<std::string> fired_rules(const Breakdown& step);

/// The duration and price of a whole training run at the token rate of one case.
struct CaseCost {
  std::string name;
  int ranks = 0;
  double tokens_per_second = 0;  // measured or predicted
  double duration_s = 0;         // of a change: the baseline's times its effect
  double price = 0;
};

/// A case proven faster (or predicted faster, in a prediction), against the baseline. By its effect's centre and
/// interval, which are those of the verdict, and not by the quotient of two printed rates. low and high belong to the
/// ends of the interval: low saves least.
struct CaseSaving {
  CaseCost after;
  double gpus_recovered = 0, gpus_low = 0, gpus_high = 0;  // how many more would do the same without the change
  double saved_share = 0, saved_share_low = 0, saved_share_high = 0;  // of the price of a token
  double saved_run = 0;                                               // in the price of the run
  double saved_yearly = 0;  // in a year's continuous use of the baseline's GPUs
};

struct CostEstimate {
  config::Cost cost;
  int steps = 0;          // timed ones, of all finished blocks of the baseline
  double confidence = 0;  // of the intervals of the effects
  bool ranks_are_gpus = true;
  bool predicted = false;         // nothing was measured; `after` has what is predicted faster, without intervals
  CaseCost before;                // the baseline
  std::vector<CaseSaving> after;  // cheapest token first; none: nothing is faster
};

/// Nothing where the baseline was not measured or its tokens are unknown. `after` is empty for an unreliable sweep,
/// which proves nothing. A rank counts as a GPU; where there are none, the price is
/// one of a rank.
std::optional<CostEstimate> estimate_cost(const store::Result& result, const Summary& summary,
                                          const config::Cost& cost);

// Who was late. All ranks end a step together, so their step times are equal: early ranks wait in a collective for late
// ones. The splits of the profiled steps show it: the late rank communicates, that is waits, least.

struct Straggler {
  std::int32_t rank = 0;
  std::string host = {}, device = {};
  std::int32_t late_cases = 0;  // cases whose profiled step waited for it
  // Its own time (the step without communication) beyond the median of the other ranks that do the same work: means
  // over all profiled cases; may be negative.
  double late_s = 0;
  double late_share = 0;             // the same of the step
  double compute_s = 0, idle_s = 0;  // what of late_s was spent computing more, and doing nothing (host)
  bool named = false;                // found to be late, not merely among the last
};

struct Stragglers {
  std::vector<Straggler> ranks;    // worst first, at most 16; empty where no profiled step tells
  std::vector<double> late_share;  // by rank, as that of a Straggler; NaN: no step tells; empty as `ranks`
  std::string evidence;            // what it rests on, in whole sentences
  std::int32_t cases = 0;          // profiled steps looked at
  bool found() const { return !ranks.empty() && ranks.front().named; }
};

/// Takes time that is linear in the splits, but for sorting.
Stragglers find_stragglers(const store::Result& result);

/// One step down from the peak (points > 0 are lost) or, rarely, up.
struct WaterfallBar {
  std::string name;              // "matrix products below peak", "waiting for slower ranks"
  std::optional<Part> part;      // of the breakdown it comes from; none: "profiled step differs from the timed ones"
  double points = 0;             // share of the peak: 0.12 is 12 points of MFU
  double seconds = 0;            // what the part took, mean over ranks
  std::optional<double> roof_s;  // what it would take at the machine's limit; absent: the limit is not known
  std::string roof;  // what that limit is: "peak FLOP/s", "memory bandwidth", "stated links, hidden or not" …
};

/// From 100 % of the peak to the measured MFU: 1 = mfu + sum of points, exactly.
struct Waterfall {
  double mfu = 0;
  double step_s = 0;                      // what the MFU is of
  bool timed = false;                     // step_s is of timed steps; no: of the profiled one, for no block finished
  double ideal_s = 0;                     // the model's FLOP at peak
  std::optional<double> gpu_utilisation;  // as NVML reports it, to show beside MFU
  std::vector<WaterfallBar> bars;         // in this order from the top; absent parts have none
};

/// Nothing without a peak or a timeline.
std::optional<Waterfall> waterfall(const store::Result& result, const CaseSummary& summary,
                                   const CaseBreakdown& breakdown);

enum class BottleneckKind : std::uint8_t {
  none,  // nothing known
  loading,
  communication,
  compute,  // products and attention below their roof
  memory,   // other computation, which memory bandwidth bounds
  host,
  bubble,
  stragglers,
};
const char* name_of(BottleneckKind kind);

/// A variable of the registry that acts on parts of the step.
struct Lever {
  std::string variable;
  double share = 0;          // of the step, that these parts take
  double lost = 0;           // of the step, that they are known to lose
  std::string acts_on = {};  // "computation, data communication"
};

struct Bottleneck {
  BottleneckKind kind = BottleneckKind::none;
  double share = 0;      // of the step that is lost to it: beyond the roof where that is known, else all that it takes
  std::string evidence;  // in whole sentences
  std::vector<Lever> levers;  // largest first
};
Bottleneck find_bottleneck(const store::Result& result, const CaseBreakdown& breakdown, const Waterfall* waterfall,
                           const Stragglers& stragglers);

// A result compared with a prediction of the same job on hardware that does what it promises: this tells a slow cluster
// from a slow configuration. The room `explain` computes the comparison; these are the values that reports show.
// docs/diagnosis.md defines them.

/// One kind of operation, in seconds of a step, means over the ranks. Of communications without the waiting for others.
struct KindCompared {
  std::string kind, group;  // "all_reduce", "data"; computations have no group
  bool recomputed = false;
  double measured_takes_s = 0, predicted_takes_s = 0;  // from their starts to their ends, hidden or not
  double measured_owns_s = 0, predicted_owns_s = 0;    // of the step

  double excess_s() const { return measured_owns_s - predicted_owns_s; }
};

/// The parts of a step that are not operations: waiting, bubble, loading, idle.
struct PartCompared {
  Part part = Part::idle;
  double measured_s = 0, predicted_s = 0;

  double excess_s() const { return measured_s - predicted_s; }
};

/// One case. What its kinds own and its parts add up to its step, on both sides.
struct CaseCompared {
  std::int32_t case_index = 0;
  double measured_s = 0, predicted_s = 0;  // the profiled step
  std::vector<KindCompared> kinds;         // the largest excess first
  std::vector<PartCompared> parts;         // likewise
};

/// Something that is wrong with the cluster, and whose picture the measured step is.
struct Cause {
  std::string fault;  // as `faults` of a configuration has it: "slow_link"
  std::string words;  // "node 5 has 50 % of its network"
  /// Causes that would look (nearly) the same, the better first: as `faults` has them, and in words.
  std::vector<std::pair<std::string, std::string>> or_else;
  std::vector<std::string> checks;  // of doctor: those that tell these apart; without or_else, those that would see it
  std::string confirmed_by;         // a finding of doctor in the same file: "pcie.width"; "": none
  double with_s = 0;                // the step, predicted with this cause and those before it
  double explains = 0;              // share of what was left unexplained before
};

struct Diagnosis {
  std::int32_t case_index = 0;  // that was looked at
  double measured_s = 0, healthy_s = 0;
  double explained_s = 0;       // the step, predicted with all causes
  double compute_factor = 1;    // computations take so many times as long as predicted, on all ranks alike
  double margin = 0;            // as a share of the step: a smaller excess has no cause
  bool error_is_known = false;  // the margin is the expected error of predicted steps
  std::vector<Cause> causes;    // the one that explains most first; empty: none is named
};

/// A case that has a profiled step and no prediction.
struct CaseNotPredicted {
  std::int32_t case_index = 0;
  std::string why;
};

struct Explanation {
  std::string why_none;  // no case has a prediction: a sentence; "": one has
  std::string hardware, calibration;
  bool of_prediction =
      false;  // what is held against the prediction is one itself, with the faults of its configuration
  std::vector<CaseCompared> cases;              // that have a profiled step and a prediction, in order
  std::vector<CaseNotPredicted> not_predicted;  // in order
  std::optional<Diagnosis> diagnosis;           // of the baseline
  std::string why_no_diagnosis;                 // a sentence; "": there is one, or why_none says it
};

/// The findings about one profiled step of a case.
struct StepFindings {
  CaseBreakdown breakdown;
  std::optional<Waterfall> waterfall;
  Bottleneck bottleneck;
  std::vector<std::string> rules;  // of thumb that applied
  program::Spans spans;            // of its groups over nodes
  std::int32_t case_index = 0;
};

/// All that the analysis says about a result, found once: what every report, page and table is made from.
struct Findings {
  Summary summary;
  std::optional<std::int32_t> best_case;       // index of what best() is
  std::optional<std::int32_t> best_reference;  // of what it is compared with
  std::vector<StepFindings> steps;             // of the cases that have a timeline, in order of cases
  Stragglers stragglers;
  std::optional<CostEstimate> cost;        // where there is a price; filled by the caller
  std::optional<Explanation> explanation;  // where the caller asked `explain` for one

  /// The baseline, of an operation at the size of best(), if it was measured; else nullptr.
  const CaseSummary* baseline() const;
  /// The largest proven improvement, of a predicted sweep the largest predicted one; nullptr if there is none, or if
  /// the control moved: then no verdict counts. More ranks are no improvement: they say how the step scales.
  const CaseSummary* best() const { return best_case ? &summary.case_at(*best_case) : nullptr; }
  /// The baseline and the best: those of the two that are there.
  std::vector<const CaseSummary*> before_and_after() const;
  /// nullptr if the case has no timeline.
  const StepFindings* step_of(const store::AboutACase auto& row) const { return step_of_case(row.case_index); }
  const StepFindings* step_of_case(std::int32_t case_index) const;
};

/// Uses whatever of the timeline and rank_seconds the result holds.
Findings find_all(const store::Result& result);

}  // namespace harness::analysis
