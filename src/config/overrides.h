#pragma once

#include <span>
#include <string>

#include "config/problems.h"
#include "config/yaml_tree.h"

namespace harness::config {

/// Puts each "key=value" into the tree as if it had stood in the file, with the override as its place, so that it is
/// read and checked by the same code. The key is a dotted path; a bare variable is taken under `baseline`. A map given
/// for a map changes the keys it names, except for `sweep`, which it replaces.
void apply_overrides(YamlNode& root, std::span<const std::string> overrides, Problems& problems);

}  // namespace harness::config
