#include <fmt/format.h>

#include "config/case_environment.h"
#include "config/registry_rows.h"
#include "nccl/variables.h"

namespace harness::config {
namespace {

// Settings keep the canonical value, and none where NCCL is to choose.
Variable variable_of(const nccl::VariableRow& row) {
  Variable v;
  v.name = row.name;
  v.unit = row.unit;
  v.allowed = row.allowed;
  v.help = row.help;
  v.backends = only_cuda;
  v.workloads = communicating;
  v.parse = [name = row.name, canonical = row.canonical](Settings& s, std::string_view text) {
    const std::string value = canonical(text);
    if (value == "default") {
      s.nccl.erase(name);
    } else {
      s.nccl[name] = value;
    }
  };
  v.print = [name = row.name](const Settings& s) {
    const auto it = s.nccl.find(name);
    return it == s.nccl.end() ? std::string("default") : it->second;
  };
  v.without_effect = [without_effect = row.without_effect](const Settings& s) {
    if (std::string alone = without_communication(s); !alone.empty()) return alone;
    if (!without_effect) return std::string();
    const NameValues set = environment_of(s);
    return without_effect({set.begin(), set.end()});
  };
  v.acts_on = row.acts_on;
  v.fastest = row.fastest;
  if (row.conflict) v.conflict = [conflict = row.conflict](const Settings& s) { return conflict(s.nccl); };
  if (row.needs_nvlink_reduction) {
    v.lacking = [name = row.name, needs = row.needs_nvlink_reduction](const Settings& s, const Hardware& h) {
      const auto value = s.nccl.find(name);
      if (value == s.nccl.end() || !needs(value->second)) return std::string();
      return below_capability(
          h, hopper, fmt::format("{} {} needs reduction in the NVLink switches, which requires", name, value->second));
    };
  }
  v.environment_name = row.environment_name;
  v.environment_text = row.environment_text;
  return v;
}

}  // namespace

std::vector<Variable> nccl_variables() {
  std::vector<Variable> rows;
  for (const nccl::VariableRow& row : nccl::variables()) rows.push_back(variable_of(row));
  return rows;
}

}  // namespace harness::config
