#pragma once

#include <string>
#include <vector>

#include "analysis/analysis.h"

namespace harness {

/// What a reader should know before believing a result, each with a remedy. `summary` without its warnings.
std::vector<std::string> find_warnings(const Result& result, const Summary& summary);

}  // namespace harness
