#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/bottleneck.h"
#include "analysis/breakdown.h"
#include "analysis/cost.h"
#include "analysis/stragglers.h"
#include "analysis/waterfall.h"
#include "store/result.h"

namespace harness::html {

/// All that the analysis says about a result, found once.
struct Findings {
  Summary summary;
  const CaseSummary* baseline = nullptr;  // in `summary`; nullptr if there is none or nothing of it was measured
  const CaseSummary* best = nullptr;      // the largest proven improvement
  std::vector<CaseBreakdown> breakdowns;
  std::map<int, Waterfall> waterfalls;    // by case: of the baseline and the best
  std::map<int, Bottleneck> bottlenecks;  // the same
  Stragglers stragglers;
  std::vector<std::string> rules;  // of thumb that fired, of the baseline and of the sweep

  std::optional<CostEstimate> cost;  // what it is worth, where somebody gave a price; not filled by find()

  Findings() = default;
  Findings(const Findings&) = delete;  // pointers into itself
  Findings& operator=(const Findings&) = delete;
};

void find(const Result& result, Findings& findings);

}  // namespace harness::html
