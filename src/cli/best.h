#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/predicted.h"
#include "plan/combinations.h"
#include "plan/plan.h"

namespace harness::cli {

/// One of the fastest combinations.
struct RankedCombination {
  std::vector<std::pair<std::string, std::string>> settings;  // that differ from the baseline's: variable, value
  plan::PlannedCase planned;
  PredictedCase predicted;
  double distance = 0;         // share by which its step is longer than the fastest's, per token where these differ
  bool is_told_apart = false;  // the distance is larger than the error of predicted changes
};

/// Outcomes of the combinations of the values that a configuration tries.
struct Best {
  std::vector<RankedCombination> fastest;     // the fastest first
  std::optional<RankedCombination> baseline;  // none where it has no prediction
  std::vector<plan::Values> variables;
  std::vector<std::string> left_out;           // variables that are swept, but of which no value can be better
  double combinations = 0;                     // of the values, the baseline among them
  bool all = true;                             // of them were looked at; else a search went from one to the next
  std::size_t alike = 0;                       // set what has no effect: another one's step
  std::map<std::string, std::size_t> refused;  // how many, by why
  std::size_t predicted = 0;
  std::size_t same_time = 0;  // to the picosecond that of one with fewer changes, which stands for it
  std::size_t close = 0;      // other predicted ones that are not told apart from the fastest
};

/// More combinations that can run than this are searched, not predicted one by one.
inline constexpr std::size_t most_predicted = 4096;

/// Predicts the combinations of the values that the cases of a plan give to variables, and ranks those that fit in
/// memory by step time, per token where the batches differ. Of up to `limit` that can run it predicts all. Of more it
/// looks at no more than `limit`: from the baseline and from each single change it goes on to a faster one that differs
/// in one value, until none is. What it ends with need not be the fastest of all. `say` hears how far it is. Throws
/// Error if nothing predicts, or if nothing can be predicted.
Best find_best(const plan::Plan& plan, std::size_t wanted, std::size_t limit = most_predicted,
               const std::function<void(const std::string&)>& say = {});

}  // namespace harness::cli
