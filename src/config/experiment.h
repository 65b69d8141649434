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

/// The deadline for a worker's start where none is given. On GPUs it grows with the ranks: all of them load CUDA's
/// libraries from one file system and connect to each other.
double usual_start_s(BackendKind backend, int ranks);

/// The ranks whose profiled step the result keeps whole; it keeps totals of all.
enum class Timelines : std::uint8_t { roles, all };  // one rank per role; every rank

struct Measure {
  int rounds = 12;
  int warmup_steps = 2;
  int steps = 6;
  std::uint64_t seed = 1;
  double smallest_effect = 0.01;  // share: 0.01 is 1 %
  double confidence = 0.95;       // of all intervals together
  bool auto_steps = false;  // `steps` is chosen before the first block, from how long set-up takes (sweep/rounds.h)
  /// The rounds after which cases whose verdict is settled leave the sweep, ascending; the last is `rounds`. Empty: all
  /// cases stay to the end.
  std::vector<int> looks;
  Deadlines deadlines;
  bool usual_start = true;        // deadlines.start_s was not given: usual_start_s() of the ranks that run
  double time_budget_s = 0;       // 0: none
  double memory_limit_bytes = 0;  // per worker; 0: its share of the node
  Timelines timeline = Timelines::roles;
  bool share_gpus = false;  // more ranks than GPUs on a node are meant to be: for tests of function
};

/// One value of one variable to try.
struct Change {
  std::string variable;
  std::string value;  // canonical text, as Variable::print gives it
  Settings settings;  // the baseline with this one change
  /// "" or where `from_model` stands (file:line:column): a place to be taken by the values that the model's training
  /// step has (workloads/from_model.h); no case itself.
  std::string from_model = "";
};

/// Bandwidth of the links between ranks in one direction, in bytes per second; 0: not stated.
struct Fabric {
  double rank_bytes_per_s = 0;  // of one rank, towards the others on its node
  double node_bytes_per_s = 0;  // of one node, towards the others
};

/// The section `cost` of a configuration: what a GPU costs, and the training run that is planned. It changes nothing
/// that is measured; `show` and `report` turn measured token rates into durations and prices with it.
struct Cost {
  double per_gpu_hour = 0;
  std::string currency = "USD";
  double run_tokens = 0;
};

/// "2.50" or "300e9": above 0. Throw Error.
double parse_price(std::string_view text);
double parse_tokens(std::string_view text);
/// "EUR". Throws Error.
std::string parse_currency(std::string_view text);

/// The section `cost` of a configuration that is at hand as text, such as a result file's; nullopt if it has none or
/// cannot be read. Never throws.
std::optional<Cost> cost_of_text(const std::string& text, std::span<const std::string> overrides);

/// A whole configuration file, checked: every value is valid on its own. Whether a case fits a number of ranks is
/// decided by plan/.
struct Experiment {
  std::string name;
  BackendKind backend = BackendKind::cpu;
  Model model;  // no layers: not given, which only gpt needs
  Settings baseline;
  std::vector<Change> changes;  // in file order
  Measure measure;
  std::optional<Cost> cost;
  std::string output = "results/{name}-{date}.h5";
  std::optional<Hardware> hardware;
  bool without_hardware = false;           // `hardware: none`: no peak and no MFU, on purpose
  double peak_flops = 0;                   // per rank, given in the file; 0: take the hardware's or measure it
  Fabric fabric;                           // given in the file, over the hardware's
  std::optional<Calibration> calibration;  // of predictions
  bool names_calibration = false;          // else it is the one that fits the baseline (usual_calibration())
  Faults faults;                           // of predictions, in the cluster as it was found
  std::string text;                        // the file, verbatim
  std::string path;
  std::string baseline_place;  // where the baseline's layout (else the baseline) stands: file:line:column, for messages
  std::vector<std::string> overrides;  // --set key=value, in order
  std::vector<std::string> warnings;
};

/// The override with which any experiment is predicted instead of measured.
inline constexpr const char* predict = "backend=sim";

/// Reads a configuration. `overrides` are "key=value" with key a dotted path ("measure.rounds", "baseline.layout") or a
/// variable's bare name (then under baseline). Throws Error whose message lists every problem at once, a line each:
/// file:line:column: key: what was found, what is allowed, the nearest valid name. Reads only. `text`: the
/// configuration that stood at `path`, which is then not read, but names messages and the files beside it.
Experiment load_experiment(const std::string& path, const std::vector<std::string>& overrides = {},
                           std::optional<std::string> text = {});

/// Stands for the variable of a Change that changes several together; its value names them all, or the fixes of a
/// ladder.
inline constexpr std::string_view combination = "combine";
/// "micro_batch_size=4", of a combination "micro_batch_size=4 + overlap_grad_reduce=false", of a ladder "fix + fix".
std::string case_name(const Change& change);

/// The fused forms that a step of the experiment with these settings has: its backend's, or those of the software that
/// a prediction is for. The others are lowered (program/lower.h).
program::FusedSet fused_for(const Experiment& experiment, const Settings& settings);
/// The backend whose step it is: its own, or for a prediction the one that was calibrated.
BackendKind stands_for(const Experiment& experiment);

/// Whether a change sets this variable to something else than the baseline does.
bool changes(const Change& change, const Variable& variable, const Settings& baseline);

}  // namespace harness::config
