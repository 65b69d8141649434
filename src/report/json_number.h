#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

namespace harness::report {

/// JSON has no NaN and no infinity: null, as for nothing.
inline nlohmann::ordered_json json_number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}
inline nlohmann::ordered_json json_number(const std::optional<double>& value) {
  return value ? json_number(*value) : nlohmann::ordered_json(nullptr);
}

}  // namespace harness::report
