#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace harness::nccl {

/// Environment variables by their own names (NCCL_ALGO), as a worker gets them.
using Environment = std::map<std::string, std::string>;

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
};

/// In the order in which tables show them.
std::vector<VariableRow> variables();

}  // namespace harness::nccl
