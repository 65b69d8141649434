#include "launch/environment.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "config/registry.h"

namespace harness {
namespace {

bool starts_with_any(std::string_view name, std::span<const std::string_view> prefixes) {
  return std::ranges::any_of(prefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

constexpr std::array<std::string_view, 10> tuning_prefixes = {"NCCL_", "CUDA_", "UCX_",  "FI_",     "OMP_",
                                                              "GOMP_", "KMP_",  "DNNL_", "ONEDNN_", "HARNESS_"};
// Addresses, keys and paths that mpirun passes to its processes in the same clothes as settings.
constexpr std::array<std::string_view, 6> launcher_internals = {"OMPI_MCA_orte_",         "OMPI_MCA_ess",
                                                                "OMPI_MCA_pmix",          "OMPI_MCA_initial_wdir",
                                                                "OMPI_MCA_shmem_RUNTIME", "OMPI_MCA_prte"};
constexpr std::array<std::string_view, 13> launcher_prefixes = {
    "OMPI_", "PMIX_", "PMI_", "PMI2_", "OPAL_", "ORTE_", "PRTE_", "HYDRA_", "HYDI_", "MPI_", "MV2_", "FLUX_", "SLURM_"};
// Which devices are this rank's own is its launcher's business.
constexpr std::string_view own_devices = "CUDA_VISIBLE_DEVICES";
// What this program sets for each worker itself.
constexpr std::array<std::string_view, 6> set_by_us = {"HARNESS_RANK", "HARNESS_RANKS",      "HARNESS_LOCAL_RANK",
                                                       "HARNESS_CASE", "HARNESS_SUPERVISOR", "HARNESS_NODE"};

bool is_tuning(std::string_view name) {
  return name != own_devices && starts_with_any(name, tuning_prefixes) &&
         std::ranges::find(set_by_us, name) == set_by_us.end();
}

bool is_recorded(std::string_view name) {
  if (is_tuning(name) || name == own_devices || name == "SLURM_JOB_ID" || name == "SLURM_JOB_NODELIST") return true;
  return name.starts_with("OMPI_MCA_") && !starts_with_any(name, launcher_internals);
}

}  // namespace

NameValues own_environment() {
  NameValues all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) all.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return all;
}

NameValues recorded_environment(const NameValues& environment) {
  NameValues recorded;
  for (const auto& entry : environment) {
    if (is_recorded(entry.first)) recorded.push_back(entry);
  }
  std::ranges::sort(recorded);
  return recorded;
}

NameValues worker_environment(const NameValues& own, const NameValues& rank0_recorded, const NameValues& forced,
                              const NameValues& request) {
  std::map<std::string, std::string> result;
  for (const auto& [name, value] : own) {
    if (!starts_with_any(name, launcher_prefixes) && !is_tuning(name)) result[name] = value;
  }
  for (const auto& [name, value] : rank0_recorded) {
    if (is_tuning(name)) result[name] = value;
  }
  for (const auto& [name, value] : forced) result[name] = value;
  for (const auto& [name, value] : request) result[name] = value;
  return {result.begin(), result.end()};
}

NameValues environment_of(const Settings& settings) {
  NameValues result;
  for (const auto& [variable_name, value] : settings.environment) {
    const Variable* variable = find_variable(variable_name);
    if (variable != nullptr && !variable->environment_name.empty()) {
      result.emplace_back(variable->environment_name, value);
    }
  }
  return result;
}

std::vector<std::string> contradictions(const NameValues& environment, const Experiment& experiment) {
  std::set<std::string> swept;
  for (const Change& change : experiment.changes) swept.insert(change.variable);
  std::vector<std::string> lines;
  for (const Variable& variable : registry()) {
    if (variable.environment_name.empty()) continue;
    const auto set = std::ranges::find(environment, variable.environment_name, &NameValues::value_type::first);
    if (set == environment.end()) continue;
    const auto given = experiment.baseline.environment.find(variable.name);
    const bool has_baseline = given != experiment.baseline.environment.end();
    if (has_baseline && given->second == set->second) continue;
    if (has_baseline) {
      lines.push_back(
          fmt::format("{}={} is set in the environment, but the baseline says {}: {}; unset {} or change the "
                      "configuration",
                      set->first, set->second, variable.name, given->second, set->first));
    } else if (swept.contains(variable.name)) {
      lines.push_back(
          fmt::format("{}={} is set in the environment, but {} is swept and the baseline leaves it to the "
                      "library: unset {}, or give {} in the baseline",
                      set->first, set->second, variable.name, set->first, variable.name));
    }
  }
  return lines;
}

}  // namespace harness
