#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/experiment.h"
#include "machine/topology.h"
#include "plan/survey.h"
#include "program/layout.h"

namespace harness::plan {

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
/// In every round each possible case stands once, in the order of make_schedule(). The cases of an operation are a grid
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

/// The order of blocks: `rounds` rounds, each a sequence of `sets`, each a sequence of its cases, in which every case
/// stands once. Over each run of n = number of sets rounds every set stands once
/// at every place, so that drift within a round cannot favour one. When n is even every set also follows every other
/// exactly once in them, so that what it leaves behind (heat, caches of the file system) falls on all alike. The same
/// holds for the cases within their set. Depends on the arguments alone, on every machine.
std::vector<Slot> make_schedule(std::span<const EntrantSet> sets, int rounds, std::uint64_t seed);

}  // namespace harness::plan
