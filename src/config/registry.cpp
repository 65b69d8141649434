#include "config/registry.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "config/fields.h"
#include "config/registry_rows.h"

namespace harness::config {
namespace {

std::vector<Variable> make_registry() {
  std::vector<Variable> rows = training_variables();
  for (Variable& row : memory_variables()) rows.push_back(std::move(row));
  for (Variable& row : sharding_variables()) rows.push_back(std::move(row));
  for (const Variable& row : execution_variables()) rows.push_back(row);
  for (Variable& row : nccl_variables()) rows.push_back(std::move(row));
  rows.push_back(env_variable());
  rows.push_back(mended_variable());
  for (Variable& row : workload_variables()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace

int within_or_word(std::string_view text, std::string_view word, int high) {
  if (text == word) return 0;
  const bool number = !text.empty() && text.find_first_not_of("+-0123456789") == std::string_view::npos;
  if (!number) fail("found {}; allowed: {}, 1 to {}", quote(text), word, high);
  return static_cast<int>(parse_within(text, 1, high));
}

Variable true_or_false(bool Settings::*value, Variable row) {
  row.allowed = "true, false";
  row.parse = [value](Settings& s, std::string_view text) { s.*value = parse_bool(text); };
  row.print = [value](const Settings& s) { return s.*value ? "true" : "false"; };
  return row;
}

std::string without_communication(const Settings& s) {
  return s.ranks == 1 ? "there is only one rank, so nothing is communicated" : "";
}

bool has_one_replica(const Settings& s) {
  return s.ranks != 0 && s.ranks == s.replica_ranks();
}

std::string without_data_parallel(const Settings& s) {
  return has_one_replica(s) ? "data_parallel is 1, so there are no gradients to reduce" : "";
}

namespace {
const char* generation_of(int capability) {
  if (capability >= hopper) return "Hopper";
  return capability >= ampere ? "Ampere" : "Volta";
}
}  // namespace

std::string below_capability(const Hardware& hardware, int needed, std::string_view what) {
  const int has = hardware.compute_capability;
  if (has == 0 || has >= needed) return "";
  return fmt::format("{} compute capability {}.{} ({}) or later; the GPU is {} (compute capability {}.{})", what,
                     needed / 10, needed % 10, generation_of(needed), hardware.name, has / 10, has % 10);
}

void each_part(std::string_view text, std::string_view example,
               const std::function<void(std::string_view key, std::string_view value)>& take) {
  const std::string_view whole = trim(text);
  if (whole.size() < 2 || whole.front() != '{' || whole.back() != '}') {
    fail("found {}; expected a map such as {}", quote(whole), example);
  }
  std::string_view rest = trim(whole.substr(1, whole.size() - 2));
  if (rest.empty()) fail("found {}, which is empty; expected a map such as {}", quote(whole), example);
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest = part.size() < rest.size() ? rest.substr(part.size() + 1) : std::string_view();
    const std::size_t colon = part.find(':');
    if (colon == std::string_view::npos) fail("found {}; expected a map such as {}", quote(trim(part)), example);
    take(trim(part.substr(0, colon)), trim(part.substr(colon + 1)));
  }
}

bool Variable::honoured_by(std::string_view workload) const {
  return workloads.empty() || std::find(workloads.begin(), workloads.end(), workload) != workloads.end();
}

bool Variable::honoured_on(BackendKind backend) const {
  return honoured_on(backend, traits_of(backend).stands_for);
}

bool Variable::honoured_on(BackendKind backend, BackendKind as) const {
  const auto honours = [&](BackendKind kind) { return std::ranges::find(backends, kind) != backends.end(); };
  return honours(backend) || honours(as);
}

bool Variable::honoured_on(std::string_view backend, std::string_view as) const {
  const BackendTraits &traits = traits_of(backend), &traits_as = traits_of(as);
  return traits.name == backend && traits_as.name == as && honoured_on(traits.kind, traits_as.kind);
}

Purpose purpose_of(std::string_view name) {
  const Variable* variable = find_variable(name);
  return variable == nullptr ? Purpose::setting : variable->purpose;
}

std::span<const Variable> registry() {
  static const std::vector<Variable> rows = make_registry();
  return rows;
}

const Variable* find_variable(std::string_view name) {
  for (const Variable& v : registry()) {
    if (v.name == name) return &v;
  }
  return nullptr;
}

std::vector<std::string> variable_names() {
  std::vector<std::string> names;
  names.reserve(registry().size());
  for (const Variable& v : registry()) names.push_back(v.name);
  return names;
}

}  // namespace harness::config
