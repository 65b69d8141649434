#pragma once

#include <string>
#include <vector>

#include "analysis/part.h"

namespace harness::analysis {

/// The variables of the registry that act on a part of the step and that the backend honours.
std::vector<std::string> variables_for(Part part, const std::string& backend);

/// All variables that act on some part, and those that are listed as acting on none: together the whole registry.
std::vector<std::string> levers();
std::vector<std::string> variables_without_lever();

}  // namespace harness::analysis
