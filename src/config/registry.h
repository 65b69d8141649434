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
  size,     // of the one operation that is measured: no value is better. A sweep may also ask for those that the
            // configured model's training step has: `sweep: {message_size: from_model}`
  scale,    // how much hardware takes part: a scaling curve
};

/// How a change of a variable affects the training.
enum class Mathematics : std::uint8_t {
  same,     // sums in another order at most
  rounded,  // the same within a bound that follows from the numbers it computes in
  another,  // another training: other batches, or as many tokens at other times; never an improvement
};

inline constexpr auto no_reason = [](const auto&...) { return std::string(); };

/// A variable is one row: the YAML key, `--set` name, result column and table heading are all `name`, and what the
/// result file records is print(settings) of the very Settings the worker ran with. All that other rooms need to know
/// of it stands here; they go through the rows, and none of them lists variables.
struct Variable {
  std::string name = {};
  std::string allowed = {};                // for people: "fp32, bf16"; may be left out where `choices` are all
  Choices choices = {};                    // its values that are words
  std::vector<std::string> examples = {};  // one or two values to try; may be left out where the choices have them
  std::string help = {};                   // one line
  std::vector<BackendKind> backends = {BackendKind::cpu, BackendKind::cuda};  // that honour it
  std::vector<std::string> parts = {};  // the keys of a compound value ("tensor_parallel"); empty for a plain one
  bool has_ranges = false;              // a list of its values may have ranges of sizes: "8 B..8 GiB x2"
  /// Reads a value as a person writes it ("1 MiB", "true", "ring", "{tensor_parallel: 2}"). Throws Error naming what
  /// was found and what is allowed. A compound value changes only the parts it names.
  std::function<void(Settings&, std::string_view text)> parse = {};
  /// The value in canonical form; parse(print(s)) gives s back.
  std::function<std::string(const Settings&)> print = {};

  /// The parts of a step whose time it can change. Empty: none, or it only says how much is computed.
  std::vector<Part> acts_on = {};
  /// The value with which it has done what it can for them, as printed; "": there is none that always has.
  std::string fastest = {};
  /// Whether it changes the rate that products can reach at all, and so their least time.
  bool moves_peak = false;
  Purpose purpose = Purpose::setting;
  Mathematics mathematics = Mathematics::same;

  /// The variable that decides instead, wherever it is not at its default: what is recorded of this one then says
  /// nothing of the case. "": none.
  std::string overridden_by = {};
  /// "" when the variable has an effect under these settings, else why it has none ("data_parallel is 1, …").
  /// Some answers depend on the number of ranks and need settings.ranks to be it, not 0.
  std::function<std::string(const Settings&)> without_effect = no_reason;
  /// "" when the backend can run this value, else why it cannot ("tf32 needs tensor cores, …"). For variables that it
  /// honours; asked of the settings after parse().
  std::function<std::string(const Settings&, BackendKind)> refused_by = no_reason;
  /// Why these settings, which run, defeat the purpose of this value ("it sends more than it saves, …"); "": they do
  /// not. Needs settings.ranks as without_effect does.
  std::function<std::string(const Settings&)> caution = no_reason;
  /// Why this value cannot go with those of other variables; "" if it can. Each alone is valid.
  std::function<std::string(const Settings&)> conflict = no_reason;
  /// A feature that this value needs and that the hardware lacks, as far as its file says; "": none.
  std::function<std::string(const Settings&, const Hardware&)> lacking = no_reason;

  /// The environment variable it becomes in the worker, "" if none ("NCCL_ALGO").
  std::string environment_name = {};
  /// The text of that variable for a printed value: "4194304" for "4 MiB".
  std::function<std::string(const std::string& printed)> environment_text = std::identity();
  /// A compound value whose keys are the user's own (`env`): a map of names and values, `parts` is empty.
  bool free_parts = false;
  /// The workloads that it changes anything in; empty: all.
  std::vector<std::string> workloads = {std::string(training_workload)};
  /// It has one value for all cases and stands at the top of a configuration, like `backend`.
  bool fixed = false;

  bool honoured_by(std::string_view workload) const;
  /// By names, as a result has them. `as`: the backend that it predicts, or itself.
  bool honoured_on(std::string_view backend, std::string_view as) const;
};

/// All variables, in the order in which tables show them.
std::span<const Variable> registry();
/// nullptr if there is none of that name.
const Variable* find_variable(std::string_view name);
std::vector<std::string> variable_names();
/// A setting, for a variable that only another version knows.
Purpose purpose_of(std::string_view name);

/// Its value where a configuration does not name it, in canonical form.
std::string default_of(const Variable& variable);
/// One or two other values to try, as a person would write them in a list of YAML.
std::vector<std::string> example_values(const Variable& variable);
/// A line of a configuration: "sweep: {bucket_size: [50 MiB, 100 MiB]}"; for what is not swept "workload: collective".
std::string example_of(const Variable& variable);

// ---- The environment of workers: the variable `env`, and what a library reads there

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

/// The environment variables that a case's settings stand for: those of the variables that a library reads from its
/// environment (nccl_algo becomes NCCL_ALGO), then `env` as it is. The only place that knows.
NameValues environment_of(const Settings& settings);

/// The requests of these settings to NCCL, to be held against its log.
std::vector<nccl::Request> nccl_requests(const Settings& settings);

}  // namespace harness::config
