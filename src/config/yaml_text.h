#pragma once

#include <string>
#include <string_view>

#include "config/yaml_tree.h"

namespace harness::config {

/// A scalar as YAML reads it back, also within a list or a map: quoted unless it is plainly a word or a number.
std::string yaml_word(std::string_view text);
/// The canonical text of a variable's value; compound ones print as YAML.
std::string yaml_value(const std::string& canonical);
/// A node on one line; "" for nothing.
std::string flow(const YamlNode& node);
/// The text of a scalar as it is, of all else its flow().
std::string value_text(const YamlNode& node);

}  // namespace harness::config
