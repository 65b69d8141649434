#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/part.h"

namespace harness::nccl {

/// Environment variables by their own names (NCCL_ALGO), as a worker gets them.
using Environment = std::map<std::string, std::string>;
/// Canonical values by the name of the variable (nccl_algo); absent: left to NCCL.
using Values = std::map<std::string, std::string>;

/// A variable of the registry that NCCL reads from its environment. config/registry_nccl.cpp makes registry rows of
/// these; honoured.cpp checks what became of them, by environment_name.
struct VariableRow {
  std::string name, environment_name, allowed, help;
  /// The canonical spelling of what a person writes; "default" leaves the choice to NCCL. Throws Error.
  std::function<std::string(std::string_view text)> canonical;
  std::string unit = {};
  /// Why the variable has no effect beside these others, "" if it has one.
  std::function<std::string(const Environment&)> without_effect = {};
  /// What NCCL reads where people write `canonical` ("4 MiB" becomes "4194304"). Empty: the same.
  std::function<std::string(const std::string& canonical)> environment_text = {};
  /// The parts of a step whose time it can change. Empty for what a site has: adapters, interfaces.
  std::vector<Part> acts_on = {};
  std::string fastest = {};  // the value with which it has done what it can, "" if none always has
  /// Why the values cannot go together, "" if they can; `values` are canonical, by name of variable.
  std::function<std::string(const Values& values)> conflict = {};
  /// Whether this canonical value asks for reduction in the NVLink switches, which came with Hopper. Empty: none does.
  std::function<bool(const std::string& canonical)> needs_nvlink_reduction = {};
};

/// In the order in which tables show them.
std::vector<VariableRow> variables();

}  // namespace harness::nccl
