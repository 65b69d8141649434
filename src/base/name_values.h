#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace harness {

/// Names and their values, in an order that means something: environment variables, library versions.
using NameValues = std::vector<std::pair<std::string, std::string>>;

/// The value of the first entry of that name, "" if there is none.
inline std::string value_of(const NameValues& entries, std::string_view name) {
  for (const auto& [key, value] : entries) {
    if (key == name) return value;
  }
  return "";
}

}  // namespace harness
