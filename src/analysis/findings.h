#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/bottleneck.h"
#include "analysis/breakdown.h"
#include "analysis/explanation.h"
#include "analysis/stragglers.h"
#include "analysis/summary.h"
#include "config/experiment.h"
#include "program/links.h"
#include "store/result.h"

namespace harness::analysis {

/// Rules of thumb that practitioners use, for one case: a sentence for each rule that applies, with the numbers that
/// made it apply. None of them proves anything; each tells where to look.
std::vector<std::string> fired_rules(const store::Result& result, const Summary& summary,
                                     const CaseBreakdown& breakdown);
/// Those of them that ask for nothing but where the time of a step went.
std::vector<std::string> fired_rules(const Breakdown& step);
/// Rules of thumb for the sweep as a whole: efficiency beyond one node, tokens/s against the batch.
std::vector<std::string> fired_rules(const store::Result& result, const Summary& summary);

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
  std::vector<std::string> rules;          // about the sweep as a whole
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
