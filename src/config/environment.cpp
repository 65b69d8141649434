#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/text.h"
#include "config/registry_rows.h"
#include "nccl/log.h"
#include "nccl/values.h"

namespace harness::config {
namespace {

constexpr std::array<std::string_view, 13> launcher_prefixes = {
    "OMPI_", "PMIX_", "PMI_", "PMI2_", "OPAL_", "ORTE_", "PRTE_", "HYDRA_", "HYDI_", "MPI_", "MV2_", "FLUX_", "SLURM_"};

// Names that would break a worker or make a measurement misleading, and why.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> refused{
    {{"CUDA_VISIBLE_DEVICES", "the launcher decides which GPU a rank uses, and env is the same on all ranks"},
     {"NVIDIA_VISIBLE_DEVICES", "the launcher decides which GPU a rank uses"},
     {"NCCL_HOSTID", "it names one host, and env is the same on all ranks"},
     {"NCCL_COMM_ID", "harness itself tells its workers where to connect"},
     {"NCCL_DEBUG", "harness sets it: timed steps log warnings only, an untimed worker records what NCCL did"},
     {"NCCL_DEBUG_FILE", "harness sets it, for the untimed worker that records what NCCL did"},
     {"NCCL_DEBUG_SUBSYS", "harness sets it, for the untimed worker that records what NCCL did"},
     {"NCCL_SHARP_ENABLE",
      "NCCL has no such variable. SHARP in the network is nccl_collnet: true with a CollNet plug-in "
      "(nccl-rdma-sharp-plugins, HPC-X); in the NVLink switches it is nccl_nvls"},
     {"OMP_NUM_THREADS", "harness sets it; use the variable threads instead"}}};

void check_name(std::string_view name) {
  if (name.empty() || !has_only(name, "_") || is_digit(name.front())) {
    fail(
        "found {}; the name of an environment variable consists of letters, digits and '_' and does not begin with a "
        "digit",
        quote(name));
  }
  if (find_variable(name) != nullptr) fail("{} is a variable of harness; write it next to env, not inside it", name);
  for (const Variable& v : registry()) {
    if (v.environment_name == name) fail("{} is set by the variable {}; write that next to env instead", name, v.name);
  }
  for (const auto& [refused_name, why] : refused) {
    if (name == refused_name) fail("{} cannot be in env: {}", name, why);
  }
  if (name.starts_with("HARNESS_")) {
    fail("{} cannot be in env: names that begin with HARNESS_ are reserved for harness", name);
  }
  if (belongs_to_launcher(name)) {
    fail("{} cannot be in env: it belongs to the launcher and is not passed on to workers", name);
  }
}

}  // namespace

void check_env_entry(std::string_view name, std::string_view value) {
  check_name(name);
  if (std::ranges::any_of(value, [](char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0; })) {
    fail("found {}; a value has no control characters", quote(value));
  }
  if (nccl::reads_integer(name) && !nccl::parse_integer(value)) {
    fail("found {}; {}", quote(value), nccl::misread_as(value));
  }
  if (name.starts_with("NCCL_") && value.empty()) {
    fail("found ''; NCCL would use its default; leave the variable out instead");
  }
}

std::string env_warning(std::string_view name) {
  const nccl::ForeignName* foreign = nccl::find_foreign_name(name);
  if (!name.starts_with("NCCL_") || nccl::knows(name)) return "";
  if (foreign != nullptr) {
    return fmt::format("env: {} belongs to {}: {}. NCCL itself ignores it; it is passed on as it is", name,
                       foreign->owner, foreign->note);
  }
  return fmt::format(
      "env: {} is no variable of NCCL 2.18 to 2.30, which ignores names that it does not know{}. It is passed on as it "
      "is, for a later NCCL or a plug-in that reads it",
      name, did_you_mean(nccl::nearest_name(name)));
}

bool belongs_to_launcher(std::string_view name) {
  return std::ranges::any_of(launcher_prefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

bool runs_foreign_code(std::string_view name) {
  constexpr std::array<std::string_view, 3> beginnings = {"LD_", "PYTHON", "PERL"};
  constexpr std::array<std::string_view, 6> within = {"PRELOAD",   "PLUGIN",    "INJECTION",
                                                      "LIBRARIES", "COMPONENT", "DRIVERS"};
  constexpr std::array<std::string_view, 5> whole = {"NCCL_NET", "NCCL_PROFILER", "NCCL_CONF_FILE", "BASH_ENV", "ENV"};
  const std::string capitals = upper(name);
  return starts_with_any(capitals, beginnings) || capitals.ends_with("PATH") || capitals.ends_with("_DIR") ||
         std::ranges::any_of(within, [&](std::string_view part) { return capitals.find(part) != std::string::npos; }) ||
         std::ranges::find(whole, capitals) != whole.end();
}

Variable env_variable() {
  return {
      .name = "env",
      .allowed =
          "{NAME: value, …}, environment variables that are not variables of harness, such as {NCCL_IB_TIMEOUT: 22}",
      .examples = {"{NCCL_IB_TIMEOUT: 22}"},
      .help = "environment variables of the workers; a change adds or replaces those that it names",
      .parse =
          [](Settings& s, std::string_view text) {
            const auto entries = parse_map(text);
            if (!entries) fail("found {}; expected a map such as {{NCCL_IB_TIMEOUT: 22}}", quote(text));
            std::map<std::string, std::string> env;
            for (const auto& [name, value] : *entries) {
              check_env_entry(name, value);
              if (!env.emplace(name, value).second) fail("found {} twice; write it once", name);
            }
            for (auto& [name, value] : env) s.env[name] = std::move(value);
          },
      .print =
          [](const Settings& s) {
            return print_map({s.env.begin(), s.env.end()});
          },
      .free_parts = true,
      .workloads = any_workload};
}

NameValues environment_of(const Settings& settings) {
  NameValues result;
  for (const auto& [name, value] : settings.nccl) {
    const Variable& variable = *find_variable(name);
    result.emplace_back(variable.environment_name, variable.environment_text(value));
  }
  result.insert(result.end(), settings.env.begin(), settings.env.end());
  return result;
}

std::vector<nccl::Request> nccl_requests(const Settings& settings) {
  std::vector<nccl::Request> requests;
  for (const auto& [name, value] : settings.nccl)
    requests.push_back({name, value, find_variable(name)->environment_name});
  for (const auto& [name, value] : settings.env) {
    const bool logging = name.starts_with("NCCL_DEBUG");
    if (name.starts_with("NCCL_") && !logging) requests.push_back({name, value, name});
  }
  return requests;
}

}  // namespace harness::config
