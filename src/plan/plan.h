#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/experiment.h"
#include "machine/topology.h"
#include "plan/survey.h"
#include "program/layout.h"

namespace harness::plan {

/// One thing to measure: the baseline with at most one variable changed.
struct PlannedCase {
  std::string name;      // "baseline", "baseline_again", "baseline_alone", "micro_batch_size=2"
  std::string variable;  // "" for the baselines
  std::string value;
  config::Settings settings;
  program::Layout layout;          // of the ranks it uses; meaningless when impossible
  std::string impossible;          // why it cannot run on these ranks, "" if it can
  std::vector<std::string> notes;  // "bucket_size has no effect: data_parallel is 1, …"
  bool is_alike = false;           // one of these neither has an effect nor takes one away: another case has its step
  std::int64_t micro_batches = 0;  // per data-parallel replica and step (gradient accumulation)
  std::vector<std::string> uses;   // of one operation, what of the model's step it is: "qkv, forward"; by prepare()
  bool is_copy = false;            // of the baseline: what is found out about that holds for it
  bool needs_process = true;       // of its own for every block; else it may share one with the baseline
  std::size_t reference = 0;       // in Plan::cases: what it is compared with; of a reference itself
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

/// Which blocks of a round run in processes of their own.
enum class Processes : std::uint8_t {
  as_needed,      // of one operation those that need one, of a training step all
  one_per_block,  // all
};

struct Plan {
  config::Experiment experiment;
  int ranks = 0;
  machine::Topology topology;     // of them, as far as it is known
  std::vector<std::string> only;  // the selection it was made with
  Processes processes = Processes::as_needed;
  // The baseline, baseline_again, where it is needed baseline_alone, then the changes. Impossible ones keep their
  // place.
  std::vector<PlannedCase> cases;
  std::vector<Slot> schedule;

  const PlannedCase& baseline() const { return cases.front(); }
};

/// The cases of an experiment on `ranks` ranks and the order of their blocks: a pure function, the same on every rank.
/// In every round each possible case stands once, in the order of make_schedule(). In a sweep of one operation, the
/// cases that differ from the baseline in their Program alone are one set with it: their blocks of a round share their
/// processes. A case that needs more is a set of its own. Where there are both kinds, those alone are compared with
/// `baseline_alone`: the baseline as a set of its own, so that a process of its own is no effect of theirs. (Not with a
/// ladder, whose fixes are compared with each other: there every block has its own process, if one needs it.) Throws
/// Error if the baseline itself is impossible. Left out: a change that still stands for values of the model, and the
/// baseline's own number of ranks. Where the backend predicts, each case has one block of one step, and the baseline no
/// copy. `only`: keep these cases (and the baselines); names matched exactly or by variable. `topology`: where the
/// ranks stand, as far as it is known.
Plan make_plan(const config::Experiment& experiment, int ranks, const std::vector<std::string>& only = {},
               Processes processes = Processes::as_needed, const machine::Topology& topology = {});

/// What a person should know before anything runs: of the experiment, and of what its cases make of it.
std::vector<std::string> warnings_of(const Plan& plan);

/// A case that a plan does not have: its baseline with this change.
PlannedCase case_of(const Plan& plan, const config::Change& change);

/// Where the ranks of a case stand: as the job's do, as far as that is known, or where a fault of the experiment puts
/// them that these settings do not mend.
machine::Topology under_faults(const config::Experiment& experiment, const config::Settings& settings,
                               machine::Topology topology);

/// What make_plan() ends with, for who finds out more about the cases: the order of the blocks of the possible ones;
/// and an Error if the baseline is not possible.
void schedule_blocks(Plan& plan);
void require_baseline(const Plan& plan);

}  // namespace harness::plan
