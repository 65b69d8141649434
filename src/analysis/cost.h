#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/summary.h"
#include "config/cost.h"

namespace harness::analysis {

/// What a whole training run takes at the token rate of one case.
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

}  // namespace harness::analysis
