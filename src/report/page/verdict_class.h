#pragma once

#include <string>

#include "analysis/summary.h"

namespace harness::page {

/// The class that gives a case the colour of its verdict: "v-faster", …
std::string verdict_class(const analysis::CaseSummary& row);

}  // namespace harness::page
