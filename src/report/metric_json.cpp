#include "report/metric_json.h"

#include <cmath>

#include "report/json_number.h"

namespace harness::report {

void put_metric(const Metric& metric, const std::optional<double>& value, nlohmann::ordered_json& out) {
  const std::string key(metric.key);
  // A median of counts need not be whole.
  const bool whole = metric.unit == Unit::count && value && *value == std::floor(*value);
  const auto json = whole ? nlohmann::ordered_json(static_cast<std::int64_t>(*value)) : json_number(value);
  const std::size_t dot = key.find('.');
  if (dot == std::string::npos) {
    out[key] = json;
    return;
  }
  const std::string object = key.substr(0, dot);
  if (!out.contains(object)) out[object] = nlohmann::ordered_json::object();
  if (out[object].is_object()) out[object][key.substr(dot + 1)] = json;
}

}  // namespace harness::report
