#pragma once

#include <string>
#include <vector>

#include "analysis/summary.h"

namespace harness::analysis {

/// What the guards of the level model object to, each with a remedy; nothing where no level was estimated.
std::vector<std::string> level_warnings(const store::Result& result, const Summary& summary);

}  // namespace harness::analysis
