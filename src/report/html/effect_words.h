#pragma once

#include <string>

#include "analysis/analysis.h"

namespace harness::html {

/// "-12.0 %", of the step time; "" where there is none.
std::string change_of(const CaseSummary& one);
/// "[-12.9 %, -11.1 %]"; "" where there is none. Two rounds give ends that say nothing: those are cut.
std::string interval_of(const CaseSummary& one);
/// "faster", "failed", "too few rounds", …
std::string verdict_of(const CaseSummary& one);
/// A class for the verdict's colour.
std::string kind_of(const CaseSummary& one);

bool is_baseline(const CaseSummary& one);  // or its control
/// The largest proven improvement; nullptr if there is none, or if the control failed: then no verdict counts.
const CaseSummary* best_proven(const Summary& summary);

}  // namespace harness::html
