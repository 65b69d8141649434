#pragma once

#include <string>

#include "analysis/summary.h"

namespace harness::html {

/// The class that gives a case the colour of its verdict: "v-faster", …
std::string verdict_class(const CaseSummary& row);

}  // namespace harness::html
