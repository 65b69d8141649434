#include "report/files_json.h"

#include <nlohmann/json.hpp>

namespace harness::report {

using Json = nlohmann::ordered_json;

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

}  // namespace harness::report
