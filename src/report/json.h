#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace harness::report {

// Helpers that the JSON of one result and that of several share.

using Json = nlohmann::ordered_json;

/// Null if there is no value. A plain number needs no conversion: the library writes NaN and infinity as null.
Json json_number(const std::optional<double>& value);

/// An array of make(row) for each row.
template <class Rows, class Make>
Json json_list(const Rows& rows, Make make) {
  Json out = Json::array();
  for (const auto& row : rows) out.push_back(make(row));
  return out;
}

/// Serialises a document as ASCII, so that a hostile file cannot control a terminal. Invalid UTF-8 (host names, stderr
/// of workers) must not make the rest unreadable.
std::string json_text(const Json& document);

}  // namespace harness::report
