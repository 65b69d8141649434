#pragma once

#include <string>
#include <vector>

#include "config/experiment.h"

namespace harness::config {

/// The experiment of a configuration whose text a result file holds. `path`: where it stood, for messages and for the
/// files beside it; it is not read. Throws Error as load_experiment() does.
Experiment load_recorded(const std::string& text, const std::string& path, const std::vector<std::string>& overrides);

}  // namespace harness::config
