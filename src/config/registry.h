#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/part.h"
#include "base/text.h"
#include "config/backend.h"
#include "config/choice.h"
#include "config/hardware.h"
#include "config/settings.h"
#include "nccl/log.h"

namespace harness::config {

/// The purpose of sweeping a variable.
enum class Purpose : std::uint8_t {
  setting,  // a value may be better than another
  size,     // the size of the measured operation: no value is better. A sweep may also take the sizes in the
            // configured model's training step: `sweep: {message_size: from_model}`
  scale,    // how much hardware takes part: a scaling curve
};

/// How a change of a variable affects the training.
enum class Mathematics : std::uint8_t {
  same,     // at most another summation order
  rounded,  // equal within a bound that follows from the number format
  another,  // a different training: other batches, or as many tokens at other times; never an improvement
};

inline constexpr auto no_reason = [](const auto&...) { return std::string(); };

/// A variable is one row. `name` is its YAML key, `--set` name, result column and table heading. The result file
/// records print(settings) of the very Settings that the worker ran with. Other code iterates over the rows and never
/// lists variables itself.
struct Variable {
  std::string name = {};
  std::string allowed = {};                // as shown to users: "fp32, bf16"; optional if `choices` are all
  Choices choices = {};                    // its values that are words
  std::vector<std::string> examples = {};  // one or two values to try; optional if the choices have them
  std::string help = {};                   // one line
  std::vector<BackendKind> backends = {BackendKind::cpu, BackendKind::cuda};  // that honour it
  std::vector<std::string> parts = {};  // the keys of a compound value ("tensor_parallel"); empty for a plain one
  bool has_ranges = false;              // a list of its values may contain ranges of sizes: "8 B..8 GiB x2"
  /// Reads a value as written in a configuration ("1 MiB", "true", "ring", "{tensor_parallel: 2}"). Throws an Error
  /// that states what was found and what is allowed. A compound value changes only the parts it names.
  std::function<void(Settings&, std::string_view text)> parse = {};
  /// Returns the value in canonical form; parse(print(s)) gives s back.
  std::function<std::string(const Settings&)> print = {};

  /// The parts of a step whose time it can change. Empty: none, or it only sets the amount of computation.
  std::vector<Part> acts_on = {};
  /// The printed value at which it can speed these parts up no further; "": no value is always the fastest.
  std::string fastest = {};
  /// Whether it changes the peak rate of GEMMs, and so their minimum time.
  bool moves_peak = false;
  Purpose purpose = Purpose::setting;
  Mathematics mathematics = Mathematics::same;

  /// The variable that takes precedence whenever it is not at its default; the recorded value of this one then does not
  /// describe the case. "": none.
  std::string overridden_by = {};
  /// Returns "" if the variable has an effect under these settings, else why it has none ("data_parallel is 1, …").
  /// Some answers depend on the number of ranks and need it in settings.ranks instead of 0.
  std::function<std::string(const Settings&)> without_effect = no_reason;
  /// Returns "" if the backend can run this value, else why it cannot ("tf32 needs tensor cores, …"). Called after
  /// parse(), for variables that the backend honours.
  std::function<std::string(const Settings&, BackendKind)> refused_by = no_reason;
  /// Returns why these valid settings defeat the purpose of this value ("it sends more than it saves, …"), or "". Needs
  /// settings.ranks as without_effect does.
  std::function<std::string(const Settings&)> caution = no_reason;
  /// Returns why this value conflicts with other variables' values, each valid alone; "" if it does not.
  std::function<std::string(const Settings&)> conflict = no_reason;
  /// Returns the feature that this value needs and the hardware lacks according to its file; "": none.
  std::function<std::string(const Settings&, const Hardware&)> lacking = no_reason;

  /// The environment variable that it sets in the worker ("NCCL_ALGO"); "": none.
  std::string environment_name = {};
  /// Returns the text of that variable for a printed value: "4194304" for "4 MiB".
  std::function<std::string(const std::string& printed)> environment_text = std::identity();
  /// Whether its value is a map with user-defined keys (`env`); `parts` is then empty.
  bool free_parts = false;
  /// The workloads that honour it; empty: all.
  std::vector<std::string> workloads = {std::string(training_workload)};
  /// Whether it has one value for all cases and is a top-level key of a configuration, like `backend`.
  bool fixed = false;

  bool honoured_by(std::string_view workload) const;
  /// Takes names as in a result. `as`: the backend that `backend` predicts, or itself.
  bool honoured_on(std::string_view backend, std::string_view as) const;
};

/// All variables, in the order in which tables show them.
std::span<const Variable> registry();
/// Returns nullptr for an unknown name.
const Variable* find_variable(std::string_view name);
std::vector<std::string> variable_names();
/// Returns Purpose::setting for a variable that this version does not know.
Purpose purpose_of(std::string_view name);

/// Returns its value, in canonical form, if a configuration omits it.
std::string default_of(const Variable& variable);
/// Returns one or two other values to try, as written in a YAML list.
std::vector<std::string> example_values(const Variable& variable);
/// Returns a configuration line: "sweep: {bucket_size: [50 MiB, 100 MiB]}", or "workload: collective" if it is fixed.
std::string example_of(const Variable& variable);

// ---- The environment of workers: the variable `env`, and what a library reads there

/// Throws an Error with the reason for a name that is a registry variable or that this program or its launcher sets,
/// and for a value that NCCL would misread.
void check_env_entry(std::string_view name, std::string_view value);

/// Returns a warning for a name that looks like NCCL's but that NCCL does not read, with its owner or the likely
/// intended name; "" for other names.
std::string env_warning(std::string_view name);

/// Whether a launcher sets it for its processes ("OMPI_…", "SLURM_…").
bool belongs_to_launcher(std::string_view name);

/// Whether a variable can make a loader, a library or a shell run external code: LD_PRELOAD, search paths, plug-ins,
/// injected libraries.
bool runs_foreign_code(std::string_view name);

/// Returns the environment variables for a case's settings: first those of variables that a library reads from its
/// environment (nccl_algo becomes NCCL_ALGO), then `env` unchanged. The only place that maps them.
NameValues environment_of(const Settings& settings);

/// Returns what these settings request of NCCL, to be checked against its log.
std::vector<nccl::Request> nccl_requests(const Settings& settings);

}  // namespace harness::config
