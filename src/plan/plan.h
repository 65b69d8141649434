#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/experiment.h"
#include "plan/survey.h"
#include "program/layout.h"

namespace harness::plan {

/// One thing to measure: the baseline with at most one variable changed.
struct PlannedCase {
  std::string name;      // "baseline", "baseline_again", "micro_batch_size=2"
  std::string variable;  // "" for the baselines
  std::string value;
  config::Settings settings;
  program::Layout layout;          // of the ranks it uses; meaningless when impossible
  std::string impossible;          // why it cannot run on these ranks, "" if it can
  std::vector<std::string> notes;  // "bucket_size has no effect: data_parallel is 1, …"
  std::int64_t micro_batches = 0;  // per data-parallel replica and step (gradient accumulation)
  std::vector<std::string> uses;   // of one operation, what of the model's step it is: "qkv, forward"; by prepare()
  bool is_control = false;         // baseline_again: what is found out about the baseline holds for it
  bool needs_process = true;       // of its own for every block; else it may share one with the baseline
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

struct Plan {
  config::Experiment experiment;
  int ranks = 0;
  std::vector<std::string> only;   // the selection it was made with
  std::vector<PlannedCase> cases;  // the baseline, baseline_again, then the changes; impossible ones keep their place
  std::vector<Slot> schedule;

  const PlannedCase& baseline() const { return cases.front(); }
};

/// The cases of an experiment on `ranks` ranks and the order of their blocks: a pure function, the same on every rank.
/// In every round each possible case stands once; the order is a seeded shuffle whose rotations balance positions over
/// the rounds (each block of rounds is a cyclic Latin square, shuffled anew). The blocks of a round share their
/// processes if every case of a sweep of one operation differs from the baseline in its Program alone. Throws Error if
/// the baseline itself is impossible. Left out: a change that still stands for values of the model, and the baseline's
/// own number of ranks. `only`: keep these cases (and the baselines); names matched exactly or by variable.
Plan make_plan(const config::Experiment& experiment, int ranks, const std::vector<std::string>& only = {});

/// What make_plan() ends with, for who finds out more about the cases: the order of the blocks of the possible ones;
/// and an Error if the baseline is not possible.
void schedule_blocks(Plan& plan);
void require_baseline(const Plan& plan);

}  // namespace harness::plan
