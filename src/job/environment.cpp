#include "job/job.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/text.h"
#include "config/registry.h"

namespace harness::job {
namespace {

constexpr std::array<std::string_view, 10> tuning_prefixes = {"NCCL_", "CUDA_", "UCX_",  "FI_",     "OMP_",
                                                              "GOMP_", "KMP_",  "DNNL_", "ONEDNN_", "HARNESS_"};
// Addresses, keys and paths that mpirun passes to its processes in variables named like settings.
constexpr std::array<std::string_view, 6> launcher_internals = {"OMPI_MCA_orte_",         "OMPI_MCA_ess",
                                                                "OMPI_MCA_pmix",          "OMPI_MCA_initial_wdir",
                                                                "OMPI_MCA_shmem_RUNTIME", "OMPI_MCA_prte"};
// The launcher selects this rank's devices.
constexpr std::string_view own_devices = "CUDA_VISIBLE_DEVICES";
// Variables that this program or its launcher sets for each worker.
constexpr std::array<std::string_view, 9> set_by_us = {"HARNESS_RANK",       "HARNESS_RANKS",     "HARNESS_LOCAL_RANK",
                                                       "HARNESS_CASE",       "HARNESS_CASE_SLUG", "HARNESS_BLOCK",
                                                       "HARNESS_SUPERVISOR", "HARNESS_NODE",      "HARNESS_CALLED"};

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
    if (!config::belongs_to_launcher(name) && !is_tuning(name)) result[name] = value;
  }
  for (const auto& [name, value] : rank0_recorded) {
    if (is_tuning(name)) result[name] = value;
  }
  for (const auto& [name, value] : forced) result[name] = value;
  for (const auto& [name, value] : request) result[name] = value;
  return {result.begin(), result.end()};
}

std::vector<std::string> contradictions(const NameValues& environment, const config::Experiment& experiment) {
  std::set<std::string> swept, swept_names;
  for (const config::Change& change : experiment.changes) {
    for (const config::Variable& variable : config::registry()) {
      if (config::changes(change, variable, experiment.baseline)) swept.insert(variable.name);
    }
    for (const auto& [name, value] : change.settings.env) swept_names.insert(name);
  }
  const config::Settings& baseline = experiment.baseline;
  std::vector<std::string> lines;
  // Adds a line if the environment sets `name` to another value than the baseline, or sets a swept variable. `given`:
  // the baseline's value as the configuration has it, nullptr: none; `text`: as the library reads it.
  const auto compare = [&](const std::string& name, const std::string& variable, const std::string* given,
                           const std::string& text, bool is_swept) {
    const auto set = std::ranges::find(environment, name, &NameValues::value_type::first);
    if (set == environment.end() || (given != nullptr && text == set->second)) return;
    if (given != nullptr) {
      lines.push_back(fmt::format(
          "{}={} is set in the environment, but the baseline says {}: {}; unset {} or change the configuration", name,
          set->second, variable, *given, name));
    } else if (is_swept) {
      lines.push_back(fmt::format(
          "{}={} is set in the environment, but {} is swept and the baseline leaves it to the library: unset {}, or "
          "give {} in the baseline",
          name, set->second, variable, name, variable));
    }
  };
  for (const config::Variable& variable : config::registry()) {
    if (variable.environment_name.empty()) continue;
    const auto at = baseline.nccl.find(variable.name);
    const std::string* given = at == baseline.nccl.end() ? nullptr : &at->second;
    compare(variable.environment_name, variable.name, given, given == nullptr ? "" : variable.environment_text(*given),
            swept.contains(variable.name));
  }
  for (const auto& [name, value] : baseline.env) swept_names.insert(name);
  for (const std::string& name : swept_names) {
    const auto at = baseline.env.find(name);
    const std::string* given = at == baseline.env.end() ? nullptr : &at->second;
    compare(name, "env." + name, given, given == nullptr ? "" : *given, true);
  }
  return lines;
}

}  // namespace harness::job
