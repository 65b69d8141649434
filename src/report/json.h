#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/differences.h"
#include "analysis/findings.h"

namespace harness::report {

// Parts that the JSON of one result and that of several have in common.

using Json = nlohmann::ordered_json;

/// JSON has no NaN and no infinity: null, as for nothing.
Json json_number(double value);
Json json_number(const std::optional<double>& value);

/// An array with what `make` makes of each row.
template <class Rows, class Make>
Json json_list(const Rows& rows, Make make) {
  Json out = Json::array();
  for (const auto& row : rows) out.push_back(make(row));
  return out;
}

/// `label`, `run_uuid` and `created` of each file.
Json files_json(std::span<const analysis::ComparedFile> files);
/// `group`, `name` and `values` of each difference.
Json differences_json(const std::vector<analysis::Difference>& differences);

/// The text of a document. It is ASCII, so that the text of a hostile file cannot control a terminal; what is not UTF-8
/// there (host names, stderr of workers) must not lose the rest.
std::string json_text(const Json& document);

}  // namespace harness::report
