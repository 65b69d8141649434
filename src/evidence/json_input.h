#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace harness::evidence {

using Json = nlohmann::json;

inline constexpr std::size_t longest_json = 64u << 20;

/// Parses JSON of anyone: at most 64 levels deep and a million values, and without the members of that `skipped` name.
/// Throws Error with the place for a text that is no JSON or goes beyond that.
Json parse_json(const std::string& text, std::string_view skipped = "");

/// A member as text or number, whatever its type; "" and `otherwise` for one that is not there or no such value.
std::string text_at(const Json& object, const char* key);
double number_at(const Json& object, const char* key, double otherwise = 0);
/// The member; null if `object` is no object or has none.
const Json& at(const Json& object, const char* key);

}  // namespace harness::evidence
