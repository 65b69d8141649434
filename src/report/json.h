#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace harness::report {

// Parts that the JSON of one result and that of several have in common.

using Json = nlohmann::ordered_json;

/// Null for nothing; the library writes NaN and infinity as null, too.
Json json_number(const std::optional<double>& value);

/// An array with what `make` makes of each row.
template <class Rows, class Make>
Json json_list(const Rows& rows, Make make) {
  Json out = Json::array();
  for (const auto& row : rows) out.push_back(make(row));
  return out;
}

/// The text of a document. It is ASCII, so that the text of a hostile file cannot control a terminal; what is not UTF-8
/// there (host names, stderr of workers) must not lose the rest.
std::string json_text(const Json& document);

}  // namespace harness::report
