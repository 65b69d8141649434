#include "config/combine.h"

#include <fmt/format.h>

namespace harness::config {

bool is_joint(std::string_view variable) {
  return variable == combination || variable == ladder_fixes;
}

std::string case_name(const Change& change) {
  return is_joint(change.variable) ? change.value : fmt::format("{}={}", change.variable, change.value);
}

bool changes(const Change& change, const Variable& variable, const Settings& baseline) {
  return variable.print(change.settings) != variable.print(baseline);
}

}  // namespace harness::config
