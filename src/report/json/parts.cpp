#include "report/json/parts.h"

#include <cmath>
#include <cstdint>

namespace harness::report {

Json json_number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}
Json json_number(const std::optional<double>& value) {
  return value ? json_number(*value) : Json(nullptr);
}

void put_metric(const Metric& metric, const std::optional<double>& value, Json& out) {
  const std::string key(metric.key);
  // A median of counts need not be whole.
  const bool whole = metric.unit == Unit::count && value && *value == std::floor(*value);
  const auto json = whole ? Json(static_cast<std::int64_t>(*value)) : json_number(value);
  const std::size_t dot = key.find('.');
  if (dot == std::string::npos) {
    out[key] = json;
    return;
  }
  const std::string object = key.substr(0, dot);
  if (!out.contains(object)) out[object] = Json::object();
  if (out[object].is_object()) out[object][key.substr(dot + 1)] = json;
}

Json files_json(std::span<const analysis::ComparedFile> files) {
  Json out = Json::array();
  for (const analysis::ComparedFile& file : files) {
    out.push_back({{"label", file.label}, {"run_uuid", file.result->run_uuid}, {"created", file.result->created}});
  }
  return out;
}

Json differences_json(const std::vector<analysis::Difference>& differences) {
  Json out = Json::array();
  for (const analysis::Difference& difference : differences) {
    out.push_back({{"group", difference.group}, {"name", difference.name}, {"values", difference.values}});
  }
  return out;
}

std::string json_text(const Json& document) {
  return document.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace harness::report
