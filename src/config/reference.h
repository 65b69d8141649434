#pragma once

#include <string>
#include <vector>

#include "config/registry.h"

namespace harness::config {

// What a reference says about a variable beside what its row says. All of it follows from the row.

/// Its value where a configuration does not name it, in canonical form.
std::string default_of(const Variable& variable);

/// One or two other values to try, as a person would write them in a list of YAML.
std::vector<std::string> example_values(const Variable& variable);

/// A line of a configuration: "sweep: {bucket_size: [50 MiB, 100 MiB]}"; of what is not swept "workload: collective".
std::string example_of(const Variable& variable);

}  // namespace harness::config
