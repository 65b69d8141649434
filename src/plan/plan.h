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

/// Facts about a case before it runs. FLOPs are sums over all ranks for one step. roles is 0 where nothing is
/// known: the case is impossible, or was not surveyed. Tokens and FLOP leave padding out.
struct Survey {
  std::uint64_t program_hash = 0;
  std::int64_t roles = 0;
  program::AxisSet role_axes;  // ranks that agree on these have one role
  double tokens_per_step = 0;  // of a training step
  workloads::Rate rate;        // of one operation again and again
  program::Flop flop;
  double hardware_flop = 0;            // with recomputation, attention causal
  double goodput = 1;                  // tokens per position that a step computes
  std::vector<program::Count> counts;  // per role, of one step of one rank
  std::int64_t peak_bytes = 0;         // of the largest role
  int peak_role = 0;
};

/// One thing to measure: the baseline with at most one setting changed and, of an operation, at one of its sizes.
struct PlannedCase {
  std::string name;      // "baseline", "baseline_again", "nccl_algo=ring", "nccl_algo=ring at message_size=1 MiB"
  std::string variable;  // the setting's; of the baseline at another size, the size's; "" for the baseline and its copy
  std::string value;
  config::Settings settings;
  program::Layout layout;          // of the ranks it uses; meaningless when impossible
  std::string impossible;          // why it cannot run on these ranks, "" if it can
  std::vector<std::string> notes;  // "bucket_size has no effect: data_parallel is 1, …"
  bool is_alike = false;           // one of these neither has an effect nor takes one away: another case has its step
  std::int64_t micro_batches = 0;  // per data-parallel replica and step (gradient accumulation)
  std::vector<std::string> uses;   // of one operation, what of the model's step it is: "qkv, forward"; by prepare()
  bool is_copy = false;            // of its reference: what is found out about that holds for it
  int set = 0;                     // the worker set that runs its blocks
  std::size_t reference = 0;       // in Plan::cases: the baseline at its size; of a reference itself
  Survey survey;                   // filled by prepare()

  bool is_possible() const { return impossible.empty(); }
  bool is_change() const { return !variable.empty(); }
};

/// One block to run.
struct Slot {
  int round = 0;               // from 0
  int position = 0;            // within the round
  std::size_t case_index = 0;  // in Plan::cases
  int process = 0;             // slots of one number, which follow each other, run in the same processes: the index
                               // of the first one
};

/// How many processes run the blocks of a round.
enum class Processes : std::uint8_t {
  as_needed,  // of an operation one for each setting, of a training step one for each block
  one_per_block,
};

struct Plan {
  config::Experiment experiment;
  int ranks = 0;
  machine::Topology topology;     // of them, as far as it is known
  std::vector<std::string> only;  // the selection it was made with
  Processes processes = Processes::as_needed;
  // The baseline, baseline_again, then the changes. Of an operation with several sizes: the baseline, baseline_again,
  // the baseline at the other sizes, baseline_again at these, and each change at all sizes. Impossible ones keep their
  // place.
  std::vector<PlannedCase> cases;
  std::vector<Slot> schedule;

  const PlannedCase& baseline() const { return cases.front(); }
};

/// The cases of an experiment on `ranks` ranks and the order of their blocks: a pure function, the same on every rank.
/// In every round each possible case stands once, in a balanced order. The cases of an operation are a grid
/// of sizes and settings: each setting (the baseline's, its copy's, a change of another variable than the size) is a
/// worker set that runs all sizes one after another, and a case is compared with the baseline at its size. A sweep of
/// sizes alone compares nothing and has no copy of the baseline. In a training step every case is a set of its own.
/// Throws Error if the baseline itself is impossible. Left out: a change that still stands for values of the model, and
/// the baseline's own number of ranks. Where the backend predicts, each case has one block of one step, and the
/// baseline no copy. `only`: keep these sizes and settings (and the baselines); names matched exactly or by variable.
/// `topology`: where the ranks stand, as far as it is known.
Plan make_plan(const config::Experiment& experiment, int ranks, const std::vector<std::string>& only = {},
               Processes processes = Processes::as_needed, const machine::Topology& topology = {});

/// The warnings that a user should read before anything runs: of the experiment, and of what its cases make of it.
std::vector<std::string> warnings_of(const Plan& plan);

/// A case that a plan does not have: its baseline with this change.
PlannedCase case_of(const Plan& plan, const config::Change& change);

/// Where the ranks of a case stand: as the job's do, as far as that is known, or where a fault of the experiment puts
/// them that these settings do not mend.
machine::Topology under_faults(const config::Experiment& experiment, const config::Settings& settings,
                               machine::Topology topology);

/// The end of make_plan(), to be repeated when more is known about the cases: the order of the blocks of the possible
/// ones; and an Error if the baseline is not possible.
void schedule_blocks(Plan& plan);
void require_baseline(const Plan& plan);

/// Why these settings cannot run together, or not on this hardware as far as its file says; "" if they can. Each value
/// on its own is valid. Only what is certain is refused: what may work is left to be tried.
std::string why_impossible(const config::Settings& settings, const std::optional<config::Hardware>& hardware);

/// How a case divides the ranks of a job.
struct Division {
  program::Layout layout;      // of the ranks it uses; meaningless when impossible
  std::string why_impossible;  // "" if there is a layout
};
/// Asks the workload, too, why its step cannot run with these settings or on this layout. `topology`: of the case,
/// as far as it is known.
Division divide_ranks(const config::Model& model, const config::Settings& settings, int ranks,
                      const machine::Topology& topology = {});

/// Cases, by their number, whose blocks of a round follow each other, in one process.
using EntrantSet = std::vector<std::size_t>;
/// The possible cases, by worker set; where blocks have a process each, each in a set of its own.
std::vector<EntrantSet> sets_of(const Plan& plan);

// The survey of a case.

/// The Programs of a case that a survey has built, lowered: the one or the other.
struct BuiltStep {
  std::optional<program::ProgramSet> whole;
  std::optional<program::FoldedStep> folded;
};
/// Facts that follow from lowered Programs alone.
Survey survey_of(const program::ProgramSet& step);
/// The same of a folded step: it has what its sample has, and more of the sample's middle micro-batch. Memory is that
/// of its fullest roles, lowered for a backend that declares `fused`.
Survey survey_of(const program::FoldedStep& step, program::FusedSet fused);

/// Surveys the cases of an experiment, with what they have in common done once: cases that differ in no more than
/// what a library reads from the worker's environment have the same Programs, and equal Programs the same survey.
class Surveyor {
 public:
  /// `model` must outlive it.
  Surveyor(const config::Model& model, config::BackendKind backend) : model_(model), backend_(backend) {}
  /// Builds the case's step as the backend runs it, verifies, counts and plans memory. Where the backend predicts, a
  /// long step is folded: program_hash is then that of the folded set. Throws Error naming rank and operation if
  /// verification fails.
  Survey survey(const PlannedCase& the_case);
  /// The Programs that the last survey() built for this case; nothing of one that an earlier case had the same Programs
  /// as.
  BuiltStep take_step() { return std::exchange(built_, {}); }

 private:
  const Survey& survey_step(const PlannedCase& the_case);

  const config::Model& model_;
  config::BackendKind backend_;
  std::map<std::string, Survey> by_settings_;
  std::map<std::pair<std::uint64_t, program::FusedSet>, Survey> by_programs_;
  BuiltStep built_;
};

// The whole plan, and what a device has to do with it.

/// The plan of an experiment with the survey of every possible case, and the values of the model filled in. Cases that
/// do not fit in a known memory are impossible. Pure but for reading files that `experiment` names. Throws Error.
Plan prepare(const config::Experiment& experiment, int ranks, const std::vector<std::string>& only,
             Processes processes = Processes::as_needed, const machine::Topology& topology = {});

/// A dense peak and where it is from.
struct Peak {
  double flops = 0;  // of one rank; 0: unknown
  std::string source;
};
/// The peak of one rank under a case's precision as far as the configuration says.
Peak configured_peak(const config::Experiment& experiment, config::Precision precision);

/// The hardware file that a sweep on GPUs named `device` has to use beyond what the configuration says: found by the
/// name if the configuration gives no peak of its own. Throws Error if the configured file is of another GPU, or if
/// none is of this one.
std::optional<config::Hardware> hardware_for(const config::Experiment& experiment, const std::string& device);

/// The plan for ranks whose GPU is `device`: with its hardware file, and planned anew where that file says that a case
/// cannot run there or does not fit. Throws Error as hardware_for().
Plan plan_for_device(Plan plan, const std::string& device);

/// The experiment with every `from_model` replaced by the values that the configured model's training step has, from
/// its Program for the baseline's settings on `ranks` ranks: message sizes of the baseline's collective over its group,
/// shapes of matrix products, the shape of attention. The baseline's own value is left out. Throws Error with the
/// place where `from_model` stands if the step has none of them.
config::Experiment with_model_values(const config::Experiment& experiment, int ranks,
                                     const machine::Topology& topology = {});

/// Fills `uses` of every possible case from the same Program. Nothing where the configuration has no model, or its
/// training step cannot run on `ranks` ranks.
void name_uses(Plan& plan);

// Whether a case's workers fit in what the device holds, a GPU's memory or a rank's share of a node.

/// Memory that the largest worker of a case needs at its peak: the Program's arena and what a worker of the backend
/// needs besides (docs/method.md). 0 for a case that was not surveyed.
double planned_memory_bytes(const config::Experiment& experiment, const PlannedCase& planned);

/// Memory of a rank's device.
struct DeviceMemory {
  double bytes = 0;    // 0: unknown
  std::string source;  // "hardware file h100-sxm"
};
/// As far as the configuration says.
DeviceMemory configured_memory(const config::Experiment& experiment);

/// Why a worker that uses so much of its device does not fit under the case's memory_cap; "" if it does, or nothing is
/// known. `used` says what the number is: "needs", "used".
std::string why_too_large(const PlannedCase& planned, double bytes, const DeviceMemory& device, const char* used);

/// Makes the surveyed cases that do not fit impossible, and leaves their blocks out of the schedule. Throws Error if
/// the baseline is one of them.
void refuse_what_does_not_fit(Plan& plan, const std::function<DeviceMemory(const PlannedCase&)>& memory_of);

// Bounds of a step, and other configurations that could be tried.

/// The operations of one kind, label and phase in a step of one rank, apart what is done for the second time.
struct BudgetLine {
  std::string kind;  // operation name: "matmul"
  std::string what;  // label: "qkv"; "" where a kind has many
  program::Phase phase = program::Phase::forward;
  bool recomputed = false;
  std::int64_t operations = 0;
  double flop = 0;                                // model FLOP, causal attention at half
  double bytes = 0;                               // every operand read or written once
  program::Bound bound = program::Bound::memory;  // which rate limits it
  double least_s = 0;  // at the hardware's rate: per operation the longer of FLOP / peak and bytes / bandwidth
};

/// Where the time of a step must go on the stated hardware: computation only, one operation after the other, without
/// launch gaps. Communication is not in it: what of it is exposed is what a sweep measures.
struct Budget {
  std::vector<BudgetLine> lines;     // in the order of the step
  std::int64_t role = 0, roles = 1;  // the role that takes longest is shown
  double least_s = 0;                // sum over the lines, less what may run beside the compute stream
  double model_flop = 0;             // of this role's rank in one step, as MFU counts it
  program::DeviceRates rates;

  /// MFU if the step took that long and nothing else.
  double mfu(double step_s) const { return model_flop / step_s / rates.flops; }
};

/// Bounds the step as the backend runs it. Throws Error if the hardware's rates for the case's precision are not
/// stated, or the case is impossible or computes nothing.
Budget budget(const config::Model& model, config::BackendKind backend, const PlannedCase& planned,
              const config::Hardware& hardware);

/// A variable and the values that cases give to it, as printed; the baseline's first.
struct Values {
  const config::Variable* variable = nullptr;
  std::vector<std::string> values;
};

/// One value of each variable, by its place in Values::values: 0 is the baseline's.
using Choice = std::vector<std::size_t>;

/// All combinations of the values that the cases of a plan give to variables, alone, in a `combine` or in a fix of a
/// `ladder`. A variable of which no value can be better keeps the baseline's: how many ranks there are, sizes of one
/// operation, and what makes it another training. Pure.
class Combinations {
 public:
  /// `plan` must outlive it.
  explicit Combinations(const Plan& plan);

  /// The ones that change the Program come first, so that neighbours in the order of next() have it in common.
  const std::vector<Values>& variables() const { return variables_; }
  const std::vector<std::string>& left_out() const { return left_out_; }
  /// How many there are, the baseline among them, as far as a double counts.
  double count() const;

  Choice first() const { return Choice(variables_.size(), 0); }
  /// The next one in a fixed order; false after the last.
  bool next(Choice& choice) const;

  /// Its case, which may be impossible, as case_of() makes it. Where it is alike, a value that it sets has no effect
  /// among the others, so its step is that of another combination, without it.
  PlannedCase planned(const Choice& choice) const;

 private:
  const Plan& plan_;
  std::vector<Values> variables_;
  std::vector<std::string> left_out_;
};

}  // namespace harness::plan
