#pragma once

#include <string>
#include <vector>

#include "analysis/summary.h"

namespace harness::analysis {

/// What a reader should know before believing a result, each with a remedy. The warnings of `summary` itself are not
/// read.
std::vector<std::string> find_warnings(const store::Result& result, const Summary& summary);

}  // namespace harness::analysis
