#include "config/case_environment.h"

namespace harness::config {

std::string environment_text(const Variable& variable, const std::string& printed) {
  return variable.environment_text ? variable.environment_text(printed) : printed;
}

NameValues environment_of(const Settings& settings) {
  NameValues result;
  for (const auto& [name, value] : settings.nccl) {
    const Variable* variable = find_variable(name);
    if (variable == nullptr || variable->environment_name.empty()) continue;
    result.emplace_back(variable->environment_name, environment_text(*variable, value));
  }
  result.insert(result.end(), settings.env.begin(), settings.env.end());
  return result;
}

std::vector<nccl::Request> nccl_requests(const Settings& settings) {
  std::vector<nccl::Request> requests;
  for (const auto& [name, value] : settings.nccl) {
    const Variable* variable = find_variable(name);
    if (variable == nullptr || !variable->environment_name.starts_with("NCCL_")) continue;
    requests.push_back({name, value, variable->environment_name});
  }
  for (const auto& [name, value] : settings.env) {
    const bool logging = name.starts_with("NCCL_DEBUG");
    if (name.starts_with("NCCL_") && !logging) requests.push_back({name, value, name});
  }
  return requests;
}

}  // namespace harness::config
