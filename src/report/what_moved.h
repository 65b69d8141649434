#pragma once

#include <string>
#include <vector>

#include "analysis/verdict.h"

namespace harness::report {

/// A change as a headline knows it.
struct KnownChange {
  std::string name;
  analysis::Verdict verdict = analysis::Verdict::none;
  double ratio = 1, low = 1, high = 1;  // of its time to the baseline's
};

/// "12.3 % faster [10.1 %, 14.4 %]"; per: behind "faster", as per_what() has it.
std::string how_much(const KnownChange& change, const std::string& per);

struct Asked {
  double smallest_effect = 0.01;
  int changes = 0;  // that could have got a verdict
  std::string per;  // as per_what() has it
};
/// What moved, in a sentence, by the changes that have a verdict: the fastest proven one and how the others came out,
/// or that none is proven. "" where no change has a verdict.
std::string what_moved(const std::vector<KnownChange>& changes, const Asked& asked);

}  // namespace harness::report
