#pragma once

#include <string>
#include <vector>

namespace harness::sweep {

/// What one case of a sweep costs, in seconds.
struct CaseCost {
  std::string name;
  std::string variable;  // "": the baseline or its copy, which every selection keeps
  double preparation_s = 0, block_s = 0;
};

/// What to give `--only` so that `rounds` rounds, preparation included, fit into `budget_s`, for a person who has to
/// choose: as many variables as fit together, cheapest first, then each that fits alone. Says so where none fits.
std::string selections_that_fit(const std::vector<CaseCost>& cases, double budget_s, int rounds);

}  // namespace harness::sweep
