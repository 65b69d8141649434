#pragma once

#include <string>
#include <vector>

namespace harness::cli {

/// What tables call files: their own names where these tell them apart, else the paths as they were given.
std::vector<std::string> labels_of(const std::vector<std::string>& paths);

}  // namespace harness::cli
