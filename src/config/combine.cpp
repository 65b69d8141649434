#include "config/combine.h"

#include <fmt/format.h>

namespace harness::config {

std::string case_name(const Change& change) {
  return change.variable == combination ? change.value : fmt::format("{}={}", change.variable, change.value);
}

bool changes(const Change& change, const Variable& variable, const Settings& baseline) {
  return variable.print(change.settings) != variable.print(baseline);
}

}  // namespace harness::config
