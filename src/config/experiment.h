#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/calibration.h"
#include "config/hardware.h"
#include "config/registry.h"
#include "config/settings.h"

namespace harness::config {

struct Deadlines {
  double start_s = 60;  // from spawn to ready
  double step_s = 30;   // for each step
};

/// Returns the default deadline for a worker's start. On GPUs it grows with the number of ranks, because all of them
/// load CUDA's libraries from one file system and connect to each other.
double usual_start_s(BackendKind backend, int ranks);

/// The ranks whose complete profiled step the result keeps; it keeps totals of all ranks.
enum class Timelines : std::uint8_t { roles, all };  // one rank per role; every rank

struct Measure {
  int rounds = 12;
  int warmup_steps = 2;
  int steps = 6;
  std::uint64_t seed = 1;
  double smallest_effect = 0.01;  // share: 0.01 is 1 %
  double confidence = 0.95;       // simultaneous, over all intervals
  bool auto_steps = false;        // choose `steps` before the first block, from the set-up time (sweep/recorder.h)
  /// The rounds after which cases with a settled verdict leave the sweep, ascending; the last is `rounds`. Empty: all
  /// cases stay to the end.
  std::vector<int> looks;
  Deadlines deadlines;
  bool usual_start = true;        // deadlines.start_s is not given: use usual_start_s() of the ranks that run
  double time_budget_s = 0;       // 0: none
  double memory_limit_bytes = 0;  // per worker; 0: its share of the node
  Timelines timeline = Timelines::roles;
  bool share_gpus = false;  // allow more ranks than GPUs on a node, for functional tests
};

/// One value of one variable to try.
struct Change {
  std::string variable;
  std::string value;  // canonical text, as Variable::print gives it
  Settings settings;  // the baseline with this one change
  /// "", or file:line:column of `from_model`. Such a Change is not a case: plan/ replaces it with the values in the
  /// model's training step (plan/plan.h).
  std::string from_model = "";
};

/// Bandwidth of the links between ranks in one direction, in bytes per second; 0: not stated.
struct Fabric {
  double rank_bytes_per_s = 0;  // one rank to the others on its node
  double node_bytes_per_s = 0;  // one node to the others
};

/// The section `cost` of a configuration: the price of a GPU and the planned training run. It affects no measurement;
/// `show` and `report` use it to turn measured token rates into durations and prices.
struct Cost {
  double per_gpu_hour = 0;
  std::string currency = "USD";
  double run_tokens = 0;
};

/// Parse "2.50" and "300e9", which must be above 0. Throw Error.
double parse_price(std::string_view text);
double parse_tokens(std::string_view text);
/// Parses "EUR". Throws Error.
std::string parse_currency(std::string_view text);

/// Reads the section `cost` from a configuration's text, such as a result file's. Returns nullopt if there is none or
/// it cannot be read. Never throws.
std::optional<Cost> cost_of_text(const std::string& text, std::span<const std::string> overrides);

/// A complete, checked configuration file: every value is valid on its own. plan/ decides whether a case fits a number
/// of ranks.
struct Experiment {
  std::string name;
  BackendKind backend = BackendKind::cpu;
  Model model;  // 0 layers: not given; only gpt needs it
  Settings baseline;
  std::vector<Change> changes;  // in file order
  Measure measure;
  std::optional<Cost> cost;
  std::string output = "results/{name}-{date}.h5";
  std::optional<Hardware> hardware;
  bool without_hardware = false;           // `hardware: none`: no peak and no MFU, on purpose
  double peak_flops = 0;                   // per rank, given in the file; 0: take the hardware's or measure it
  Fabric fabric;                           // given in the file; overrides the hardware's
  std::optional<Calibration> calibration;  // for predictions
  bool names_calibration = false;          // false: usual_calibration() of the baseline
  Faults faults;                           // for predictions: of the cluster before any is mended
  std::string text;                        // the file, verbatim
  std::string path;
  std::string baseline_place;          // file:line:column of the baseline's layout, else of the baseline, for messages
  std::vector<std::string> overrides;  // --set key=value, in order
  std::vector<std::string> warnings;
};

/// The override that predicts any experiment instead of measuring it.
inline constexpr const char* predict = "backend=sim";

/// Reads a configuration. `overrides` are "key=value" with key a dotted path ("measure.rounds", "baseline.layout") or a
/// variable's bare name (then under baseline). Throws an Error that lists all problems, one per line: file:line:column:
/// key: what was found, what is allowed, the nearest valid name. Writes nothing. `text`: the content of `path`, if
/// known; the file is then not read, but `path` still appears in messages and locates the files beside it.
Experiment load_experiment(const std::string& path, const std::vector<std::string>& overrides = {},
                           std::optional<std::string> text = {});

/// The `variable` of a Change that changes several variables; its `value` names all of them, or the fixes of a ladder.
inline constexpr std::string_view combination = "combine";
/// Returns "micro_batch_size=4", a combination's "micro_batch_size=4 + overlap_grad_reduce=false" or a ladder's "fix +
/// fix".
std::string case_name(const Change& change);

/// Returns the fused forms in a step of the experiment with these settings: its backend's, or for a prediction the
/// software's. lower() replaces all others (program/program.h).
program::FusedSet fused_for(const Experiment& experiment, const Settings& settings);
/// Returns the backend whose step it is: its own, or for a prediction the calibrated one.
BackendKind stands_for(const Experiment& experiment);

/// Whether a change sets this variable to something else than the baseline does.
bool changes(const Change& change, const Variable& variable, const Settings& baseline);

}  // namespace harness::config
