#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"

namespace harness::config {

enum class BackendKind : std::uint8_t { cpu, cuda };
const char* name_of(BackendKind kind);
/// Throws Error naming what is allowed.
BackendKind parse_backend(std::string_view text);

/// A variable is one row: the YAML key, `--set` name, result column and table heading are all `name`, and what the
/// result file records is print(settings) of the very Settings the worker ran with.
struct Variable {
  std::string name;
  std::string unit;                   // "" | "sequences" | "B" | …
  std::string allowed;                // for people: "fp32, bf16"
  std::string help;                   // one line
  std::vector<BackendKind> backends;  // that honour it
  std::vector<std::string> parts;     // the keys of a compound value ("tensor_parallel"); empty for a plain one
  /// Reads a value as a person writes it ("1 MiB", "true", "ring", "{tensor_parallel: 2}"). Throws Error naming what
  /// was found and what is allowed. A compound value changes only the parts it names.
  std::function<void(Settings&, std::string_view text)> parse;
  /// The value in canonical form; parse(print(s)) gives s back.
  std::function<std::string(const Settings&)> print;
  /// "" when the variable has an effect under these settings, else why it has none ("data_parallel is 1, …").
  /// Some answers depend on the number of ranks and need settings.ranks to be it, not 0.
  std::function<std::string(const Settings&)> without_effect = [](const Settings&) { return std::string(); };
  /// The environment variable it becomes in the worker, "" if none ("NCCL_ALGO").
  std::string environment_name;
  /// What that variable is set to for a printed value, where the two differ ("4 MiB" → "4194304"). Empty: they do not.
  std::function<std::string(const std::string& printed)> environment_text = {};
  /// "" when the backend can run this value, else why it cannot ("tf32 needs tensor cores, …"). For variables that it
  /// honours; asked of the settings after parse().
  std::function<std::string(const Settings&, BackendKind)> refused_by = {};
  /// A compound value whose keys are the user's own (`env`): a map of names and values, `parts` is empty.
  bool free_parts = false;
  /// The workloads that it changes anything in; empty: all.
  std::vector<std::string> workloads = {};
  /// Its values can be those that the configured model's training step has: `sweep: {message_size: from_model}`.
  bool from_model = false;

  /// The same for all cases and said at the top of a configuration, beside `backend`.
  bool fixed = false;
  bool honoured_by(std::string_view workload) const;
};

/// All variables, in the order in which tables show them.
std::span<const Variable> registry();
/// nullptr if there is none of that name.
const Variable* find_variable(std::string_view name);
std::vector<std::string> variable_names();

}  // namespace harness::config
