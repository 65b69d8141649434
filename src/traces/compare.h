#pragma once

#include <string>
#include <utility>
#include <vector>

#include "traces/read.h"

namespace harness::traces {

/// The parts of a step before and after a change, the largest difference first: a label and a text, with the kernel,
/// collective or cause that changed most. Parts that changed by less than 1 % of the step are left out.
std::vector<std::pair<std::string, std::string>> differences_of(const Report& before, const Report& after);

}  // namespace harness::traces
