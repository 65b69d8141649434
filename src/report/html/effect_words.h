#pragma once

#include <string>

#include "analysis/summary.h"

namespace harness::html {

/// "-12.0 %", of the step time; "" where there is none.
std::string change_of(const CaseSummary& one);
/// "[-12.9 %, -11.1 %]"; "" where there is none. Two rounds give ends that say nothing: those are cut.
std::string interval_of(const CaseSummary& one);
/// "faster", "failed", "too few rounds", …
std::string verdict_of(const CaseSummary& one);
/// A class for the verdict's colour.
std::string kind_of(const CaseSummary& one);

}  // namespace harness::html
