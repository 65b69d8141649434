#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/keys.h"
#include "config/problems.h"
#include "config/yaml_tree.h"

namespace harness::config {

/// One key that a map may have and what to do with its value. Either `parse`, for a scalar: reads its text and throws
/// Error saying what was found and what is allowed; or `read`, for anything else: reports its own problems. The texts
/// are those of Key.
struct Field {
  std::string key;
  std::function<void(std::string_view text)> parse;
  std::function<void(const YamlNode& value, const std::string& key)> read = {};
  bool required = false;
  std::string help = {}, allowed = {}, fallback = {};
  Takes takes = Takes::value;
};

/// "prefix.key", or "key" at the top.
std::string dotted(std::string_view prefix, std::string_view key);

/// Reads a map: calls the fields in the order of `fields`, whatever their order in the file, and reports unknown and
/// missing keys, and values that are not scalars where a scalar is due. `known_elsewhere`: where an unknown key may
/// belong, as dotted paths, for the suggestion. False if `node` is not a map, or if the keys are only listed.
bool read_map(Problems& problems, const YamlNode& node, const std::string& prefix, std::span<const Field> fields,
              std::span<const std::string> known_elsewhere = {});

/// The text of a scalar, or nullopt and a problem.
std::optional<std::string> scalar_of(Problems& problems, const YamlNode& node, const std::string& key,
                                     std::string_view allowed);

/// Calls `parse` with the text and turns its Error into a problem. True if there was none.
bool parse_or_report(Problems& problems, const Place& place, const std::string& key, std::string_view text,
                     const std::function<void(std::string_view)>& parse);

/// A whole number from low to high; throws Error.
std::int64_t parse_within(std::string_view text, std::int64_t low, std::int64_t high);

/// Bytes per second above 0, "450 GB/s"; throws Error.
double parse_bandwidth(std::string_view text);

/// The divisors of `number` next to `wrong`, for a message: "4", or "2 or 4" when it lies between them.
std::string nearest_divisors(std::int64_t number, std::int64_t wrong);

}  // namespace harness::config
