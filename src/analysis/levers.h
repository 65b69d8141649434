#pragma once

#include <string>
#include <vector>

#include "analysis/part.h"

namespace harness {

/// The variables of the registry that act on a part of the step and that the backend honours.
std::vector<std::string> variables_for(Part part, const std::string& backend);

}  // namespace harness
