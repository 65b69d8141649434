#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <vector>

#include "analysis/differences.h"

namespace harness::report {

/// `label`, `run_uuid` and `created` of each file.
nlohmann::ordered_json files_json(std::span<const analysis::ComparedFile> files);
/// `group`, `name` and `values` of each difference.
nlohmann::ordered_json differences_json(const std::vector<analysis::Difference>& differences);

}  // namespace harness::report
