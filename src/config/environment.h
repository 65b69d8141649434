#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "config/registry.h"
#include "nccl/log.h"

namespace harness::config {

// The value of the variable `env`: a map of names and values for the worker's environment, as print_map() prints it
// (base/text.h).

using EnvMap = std::map<std::string, std::string>;

/// Throws Error for what is no such map and for an entry that check_env_entry refuses. "{}" is an empty map.
EnvMap parse_env(std::string_view text);
std::string print_env(const EnvMap& env);

/// Throws Error, which says why, for a name that is a variable of the registry or that this program or its launcher
/// sets, and for a value that NCCL would misread.
void check_env_entry(std::string_view name, std::string_view value);

/// A warning about a name that looks like NCCL's and that NCCL does not read: its owner, or the name that may have been
/// meant; "" for all others.
std::string env_warning(std::string_view name);

/// Whether a launcher sets it for its processes ("OMPI_…", "SLURM_…").
bool belongs_to_launcher(std::string_view name);

/// Whether a variable can make a loader, a library or a shell run code that lies elsewhere: LD_PRELOAD, search paths,
/// plug-ins, injected libraries.
bool runs_foreign_code(std::string_view name);

// ---- What a case sets.

/// The environment variables that a case's settings stand for: those of the variables that a library reads from its
/// environment (nccl_algo becomes NCCL_ALGO), then `env` as it is. The only place that knows.
NameValues environment_of(const Settings& settings);

/// The text that the library reads where people write `printed`, a value of `variable`.
std::string environment_text(const Variable& variable, const std::string& printed);

/// The requests of these settings to NCCL, to be held against its log.
std::vector<nccl::Request> nccl_requests(const Settings& settings);

}  // namespace harness::config
