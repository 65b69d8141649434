#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/experiment.h"
#include "config/registry.h"
#include "machine/conditions.h"
#include "program/count.h"
#include "program/layout.h"
#include "program/memory.h"
#include "program/program.h"
#include "workloads/workload.h"

namespace harness::plan {

/// Facts about a case before it runs. FLOPs are sums over all ranks for one step. roles is 0 if nothing is known: the
/// case is impossible, or was not surveyed. Tokens and FLOP exclude padding.
struct Survey {
  std::uint64_t program_hash = 0;
  std::int64_t roles = 0;
  program::AxisSet role_axes;  // ranks that agree on these share one role
  double tokens_per_step = 0;  // of a training step
  workloads::Rate rate;        // of a workload that repeats one operation
  program::Flop flop;
  double hardware_flop = 0;            // with recomputation, attention causal
  double goodput = 1;                  // tokens per position that a step computes
  std::vector<program::Count> counts;  // per role, of one step of one rank
  std::int64_t peak_bytes = 0;         // of the largest role
  int peak_role = 0;
};

/// One thing to measure: the baseline with at most one setting changed and, for an operation, at one of its sizes.
struct PlannedCase {
  std::string name;      // "baseline", "baseline_again", "nccl_algo=ring", "nccl_algo=ring at message_size=1 MiB"
  std::string variable;  // the setting; for the baseline at another size, the size; "" for the baseline and its copy
  std::string value;
  config::Settings settings;
  program::Layout layout;          // of the ranks it uses; meaningless when impossible
  std::string impossible;          // why it cannot run on these ranks, "" if it can
  std::vector<std::string> notes;  // "bucket_size has no effect: data_parallel is 1, …"
  bool is_alike = false;  // a changed variable has no effect, nor had its old value: another case has this step
  std::int64_t micro_batches = 0;  // per data-parallel replica and step (gradient accumulation)
  std::vector<std::string> uses;   // for an operation, its parts of the model's step: "qkv, forward"; by prepare()
  bool is_copy = false;            // of its reference: findings about the reference apply to it
  int set = 0;                     // the worker set that runs its blocks
  std::size_t reference = 0;       // in Plan::cases: the baseline at its size; a reference's is itself
  Survey survey;                   // filled by prepare()

  bool is_possible() const { return impossible.empty(); }
  bool is_change() const { return !variable.empty(); }
  /// The text of `layout`, whose data axis includes the ranks that share a sequence: "TP2 PP1 CP2 DP4".
  std::string layout_text() const {
    program::Layout shown = layout;
    shown[program::Axis::context] = settings.context();
    shown[program::Axis::data] /= settings.context();
    return program::text_of(shown);
  }
};

/// One block to run.
struct Slot {
  int round = 0;               // from 0
  int position = 0;            // within the round
  std::size_t case_index = 0;  // in Plan::cases
  int process = 0;             // index of the first of the consecutive slots that share these processes
};

/// How many processes run the blocks of a round.
enum class Processes : std::uint8_t {
  as_needed,  // for an operation one per setting, for a training step one per block
  one_per_block,
};

struct Plan {
  config::Experiment experiment;
  int ranks = 0;
  machine::Topology topology;     // of these ranks, as far as known
  std::vector<std::string> only;  // the selection it was made with
  Processes processes = Processes::as_needed;
  // The baseline, baseline_again, then the changes. For an operation with several sizes: the baseline, baseline_again,
  // the baseline at the other sizes, baseline_again at these, and each change at all sizes. Impossible cases keep their
  // place.
  std::vector<PlannedCase> cases;
  std::vector<Slot> schedule;

  const PlannedCase& baseline() const { return cases.front(); }
};

/// Plans the cases of an experiment on `ranks` ranks and the order of their blocks: a pure function, the same on every
/// rank. Every round runs each possible case once, in a balanced order. For an operation, the cases are a grid of sizes
/// and settings: each setting (the baseline's, its copy's, a change of a variable other than the size) is a worker set
/// that runs all sizes one after another, and a case is compared with the baseline at its size. A sweep of sizes alone
/// compares nothing and has no copy of the baseline. For a training step, every case is a set of its own. Leaves out
/// changes that still stand for model values, and the baseline's own number of ranks. If the backend predicts, each
/// case has one block of one step, and the baseline no copy. `only`: keep these sizes and settings (and the baselines);
/// names match exactly or by variable. `topology`: placement of the ranks, as far as known. Throws Error if the
/// baseline is impossible.
Plan make_plan(const config::Experiment& experiment, int ranks, const std::vector<std::string>& only = {},
               Processes processes = Processes::as_needed, const machine::Topology& topology = {});

/// Returns the warnings to read before anything runs: those of the experiment, and those that its cases add.
std::vector<std::string> warnings_of(const Plan& plan);

/// Returns a case that the plan does not have: its baseline with this change.
PlannedCase case_of(const Plan& plan, const config::Change& change);

/// Returns the placement of a case's ranks: the job's, as far as known, or that of a fault of the experiment, unless
/// these settings mend the fault.
machine::Topology under_faults(const config::Experiment& experiment, const config::Settings& settings,
                               machine::Topology topology);

/// The last steps of make_plan(), to be repeated when more is known about the cases: ordering the blocks of the
/// possible cases, and throwing Error if the baseline is impossible.
void schedule_blocks(Plan& plan);
void require_baseline(const Plan& plan);

/// Returns why these settings cannot run together, or not on this hardware as far as its file says; "" if they can.
/// Each value on its own is valid. Refuses only what is certain to fail; what may work is left to be tried.
std::string why_impossible(const config::Settings& settings, const std::optional<config::Hardware>& hardware);

/// How a case divides the ranks of a job.
struct Division {
  program::Layout layout;      // of the ranks it uses; meaningless when impossible
  std::string why_impossible;  // "" if there is a layout
};
/// Also asks the workload why its step cannot run with these settings or on this layout. `topology`: of the case, as
/// far as known.
Division divide_ranks(const config::Model& model, const config::Settings& settings, int ranks,
                      const machine::Topology& topology = {});

/// Indices of the cases whose blocks of a round run consecutively, in one process.
using EntrantSet = std::vector<std::size_t>;
/// Returns the possible cases by worker set; if every block has its own process, each case in a set of its own.
std::vector<EntrantSet> sets_of(const Plan& plan);

// The survey of a case.

/// Lowered Programs of a case that a survey has built: whole or folded.
struct BuiltStep {
  std::optional<program::ProgramSet> whole;
  std::optional<program::FoldedStep> folded;
};
/// Returns the facts that follow from lowered Programs alone.
Survey survey_of(const program::ProgramSet& step);
/// Surveys a folded step by its sample, whose middle micro-batch counts once for each micro-batch that it represents.
/// Memory is that of the step's fullest roles, lowered for a backend that declares `fused`.
Survey survey_of(const program::FoldedStep& step, program::FusedSet fused);

/// Surveys the cases of an experiment and shares common work: cases that differ only in what a library reads from the
/// worker's environment have the same Programs, and equal Programs have the same survey.
class Surveyor {
 public:
  /// `model` must outlive it.
  Surveyor(const config::Model& model, config::BackendKind backend) : model_(model), backend_(backend) {}
  /// Builds the case's step as the backend runs it, verifies and counts it and plans its memory. If the backend
  /// predicts, a long step is folded: program_hash is then that of the folded set. Throws Error naming rank and
  /// operation if verification fails.
  Survey survey(const PlannedCase& the_case);
  /// Returns the Programs that the last survey() built for this case; empty if it built none because an earlier case
  /// had them.
  BuiltStep take_step() { return std::exchange(built_, {}); }

 private:
  const Survey& survey_step(const PlannedCase& the_case);

  const config::Model& model_;
  config::BackendKind backend_;
  std::map<std::string, Survey> by_settings_;
  std::map<std::pair<std::uint64_t, program::FusedSet>, Survey> by_programs_;
  BuiltStep built_;
};

// The whole plan, and its adaptation to a device.

/// Plans an experiment, surveys every possible case and fills in the model's values. Cases that do not fit in a known
/// memory are impossible. Pure except for reading files that `experiment` names. Throws Error.
Plan prepare(const config::Experiment& experiment, int ranks, const std::vector<std::string>& only,
             Processes processes = Processes::as_needed, const machine::Topology& topology = {});

/// A dense peak rate and its source.
struct Peak {
  double flops = 0;  // of one rank; 0: unknown
  std::string source;
};
/// Returns the peak of one rank at a case's precision as far as the configuration says.
Peak configured_peak(const config::Experiment& experiment, config::Precision precision);

/// Returns the hardware file that a sweep on GPUs named `device` needs beyond the configuration: found by this name if
/// the configuration gives no peak of its own. Throws Error if the configured file is for another GPU, or if there is
/// none for this one.
std::optional<config::Hardware> hardware_for(const config::Experiment& experiment, const std::string& device);

/// Returns the plan for ranks whose GPU is `device`, with its hardware file; plans anew if a case cannot run there or
/// does not fit by this file. Throws Error as hardware_for().
Plan plan_for_device(Plan plan, const std::string& device);

/// Returns the experiment with every `from_model` replaced by the values of the configured model's training step, taken
/// from its Program for the baseline's settings on `ranks` ranks: message sizes of the baseline's collective over its
/// group, shapes of matrix products, the shape of attention. Leaves out the baseline's own value. Throws Error with the
/// place of `from_model` if the step has none of them.
config::Experiment with_model_values(const config::Experiment& experiment, int ranks,
                                     const machine::Topology& topology = {});

/// Fills `uses` of every possible case from the same Program. Does nothing if the configuration has no model, or its
/// training step cannot run on the plan's ranks.
void name_uses(Plan& plan);

// Whether a case's workers fit in the device's memory: a GPU's, or a rank's share of a node.

/// Returns the peak memory of a case's largest worker: the Program's arena plus what a worker of the backend needs
/// besides (docs/method.md). 0 for a case that was not surveyed.
double planned_memory_bytes(const config::Experiment& experiment, const PlannedCase& planned);

/// Memory of a rank's device.
struct DeviceMemory {
  double bytes = 0;    // 0: unknown
  std::string source;  // "hardware file h100-sxm"
};
/// Returns the memory as far as the configuration says.
DeviceMemory configured_memory(const config::Experiment& experiment);

/// Returns why a worker that uses `bytes` of its device does not fit under the case's memory_cap; "" if it does, or
/// nothing is known. `used` says what the number is: "needs", "used".
std::string why_too_large(const PlannedCase& planned, double bytes, const DeviceMemory& device, const char* used);

/// Makes the surveyed cases that do not fit impossible and drops their blocks from the schedule. Throws Error if the
/// baseline is one of them.
void refuse_what_does_not_fit(Plan& plan, const std::function<DeviceMemory(const PlannedCase&)>& memory_of);

// Bounds of a step, and other configurations that could be tried.

/// Operations of one kind, label and phase in a rank's step; recomputed operations have lines of their own.
struct BudgetLine {
  std::string kind;  // operation name: "matmul"
  std::string what;  // label of a product: "qkv"; "" for other kinds
  program::Phase phase = program::Phase::forward;
  bool recomputed = false;
  std::int64_t operations = 0;
  double flop = 0;                                // model FLOP, causal attention at half
  double bytes = 0;                               // every operand read or written once
  program::Bound bound = program::Bound::memory;  // which rate limits it
  double least_s = 0;  // at the hardware's rates: the longer of FLOP / peak and bytes / bandwidth per operation
};

/// Lower bound on the time of a step on the stated hardware: computation only, one operation after the other, without
/// launch gaps. Excludes communication: a sweep measures how much of it is exposed.
struct Budget {
  std::vector<BudgetLine> lines;     // in the order of the step
  std::int64_t role = 0, roles = 1;  // the role that takes longest is shown
  double least_s = 0;                // sum over the lines, less what may overlap the compute stream
  double model_flop = 0;             // of one step, mean over all ranks, as MFU counts it
  program::DeviceRates rates;

  /// Returns the MFU of a step that takes only this long.
  double mfu(double step_s) const { return model_flop / step_s / rates.flops; }
};

/// Bounds the step as the backend runs it. Throws Error if the hardware's rates for the case's precision are not
/// stated, or the case is impossible or computes nothing.
Budget budget(const config::Model& model, config::BackendKind backend, const PlannedCase& planned,
              const config::Hardware& hardware);

/// A variable and the values that cases give it, as printed; the baseline's first.
struct Values {
  const config::Variable* variable = nullptr;
  std::vector<std::string> values;
};

/// One value of each variable, as an index into Values::values: 0 is the baseline's.
using Choice = std::vector<std::size_t>;

/// All combinations of the values that a plan's cases give to variables, alone, in a `combine` or in a fix of a
/// `ladder`. Variables that cannot make the step better keep the baseline's value: the number of ranks, sizes of one
/// operation, and settings that change the mathematics of training. Pure.
class Combinations {
 public:
  /// `plan` must outlive it.
  explicit Combinations(const Plan& plan);

  /// Variables that change the Program come first, so that neighbours in the order of next() share it.
  const std::vector<Values>& variables() const { return variables_; }
  const std::vector<std::string>& left_out() const { return left_out_; }
  /// Returns the number of combinations, including the baseline, as far as a double counts.
  double count() const;

  Choice first() const { return Choice(variables_.size(), 0); }
  /// Advances to the next combination in a fixed order; false after the last.
  bool next(Choice& choice) const;

  /// Returns the combination's case, which may be impossible, as case_of() makes it. If it is alike, one of its values
  /// has no effect among the others, so its step is that of the combination without this value.
  PlannedCase planned(const Choice& choice) const;

 private:
  const Plan& plan_;
  std::vector<Values> variables_;
  std::vector<std::string> left_out_;
};

}  // namespace harness::plan
