#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/bottleneck.h"
#include "analysis/breakdown.h"
#include "analysis/cost.h"
#include "analysis/explanation.h"
#include "analysis/stragglers.h"
#include "analysis/summary.h"
#include "analysis/waterfall.h"
#include "program/placement.h"
#include "store/result.h"

namespace harness::analysis {

/// What one profiled step says of its case.
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
  std::optional<std::int32_t> best_case;  // index of what best() is
  std::vector<StepFindings> steps;        // of the cases that have a timeline, in order of cases
  Stragglers stragglers;
  std::vector<std::string> rules;          // about the sweep as a whole
  std::optional<CostEstimate> cost;        // where there is a price; filled by the caller
  std::optional<Explanation> explanation;  // where the caller asked `explain` for one

  /// The baseline, if it was measured; else nullptr.
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
