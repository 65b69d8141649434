#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "report/metrics.h"

namespace harness::report {

/// Writes a metric's value into the JSON object `out`, null where there is none. "effect.ratio" becomes the key "ratio"
/// of the object "effect", which is made if it is missing; where "effect" is null already, nothing is written.
void put_metric(const Metric& metric, const std::optional<double>& value, nlohmann::ordered_json& out);

}  // namespace harness::report
