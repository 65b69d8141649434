#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "config/experiment.h"
#include "job/job.h"
#include "plan/plan.h"
#include "store/lock.h"
#include "store/result_file.h"

namespace harness::sweep {

/// The Result before any measurement: cases, blocks in order, configuration.
store::Result planned_result(const plan::Plan& plan);

/// Adds the record of doctor. A finding about a case becomes a note on the case, too.
void add_record(store::Result& result, const store::DoctorRecord& doctor);

/// A block of the schedule before it is measured; the `index`-th of its file, and in workers of its own.
store::ResultBlock pending_block(const plan::Slot& slot);

/// At least as many bytes as the result of this plan can have, but for what doctor finds: known before anything runs,
/// with as many steps as `steps: auto` may choose, and with the whole timelines of every case. Throws Error if
/// `timeline: all` would keep more intervals than a reader can hold.
std::int64_t needed_space(const plan::Plan& plan);

/// The state of a case while a sweep runs.
struct CaseState {
  // Its last block, a guess for the next: all but its steps, which are the start of its workers and their set-up;
  // and a step.
  double set_up_s = 0, step_s = 0;
  std::string last_failure;  // signature
};

/// A sweep's result as it grows, and its file once there is one. Rank 0 only.
class Recorder {
 public:
  explicit Recorder(store::Result planned) : result_(std::move(planned)), states_(result_.cases.size()) {}

  const store::Result& result() const { return result_; }
  /// The result, to be filled in before the file exists.
  store::Result& draft() { return result_; }
  /// Whether the case was neither dropped nor refused.
  bool may_run(std::size_t case_index) const { return store::may_run(result_.cases[case_index].status); }
  CaseState& state(std::size_t case_index) { return states_[case_index]; }
  const CaseState& state(std::size_t case_index) const { return states_[case_index]; }

  void warn(const std::string& text);
  void warn(const std::vector<std::string>& texts);

  /// Throws Error like ResultFile::create(). The lock must outlive the recorder.
  void create_file(const store::Lock& lock, const std::string& command, bool overwrite);
  /// Continues a file that create_file() made in an earlier session. Throws Error if it is complete, or if its
  /// configuration, ranks or programs differ. Facts stay those of the first session. An interrupted round is to be
  /// measured again as a whole, because its blocks must share an allocation: in memory none of it is measured, while
  /// the file keeps what it has until there is better. Returns whether the libraries or the machine have changed since.
  bool resume_file(const store::Lock& lock);
  /// Throws Error if another sweep has taken the file over, in which nothing more is then written.
  void require_lock() const;

  /// The case is not run, although it was planned: it does not fit.
  void refuse(std::size_t case_index, const std::string& reason);
  /// A block failed: its case is dropped if it failed the same way before.
  void note_failure(std::size_t case_index, const job::BlockOutcome& outcome);
  /// These blocks, which are still to be measured, will run in another process than was planned: one for all of them,
  /// numbered by the first.
  void move_to_new_process(std::span<const std::size_t> block_indices);
  /// Writes a timed block, whether it succeeded or not. Returns the median of its timed steps, NaN if it failed.
  double write_block(std::size_t block_index, const job::BlockOutcome& outcome);
  /// Notes that a block will never be measured, and why.
  void leave_out(std::size_t block_index, const std::string& reason);
  /// About how long a block of this case takes.
  double expected_block_s(std::size_t case_index) const;
  /// A measured peak of a case, FLOP/s of a rank, counts if it is larger than what the case has: in the file, too.
  void raise_peak(std::size_t case_index, double flops);
  /// Writes the state and closes the file. `interrupted`: not all blocks were tried.
  store::RunState finish(bool interrupted);

 private:
  void write_case(std::size_t case_index);

  store::Result result_;
  std::vector<CaseState> states_;
  const store::Lock* lock_ = nullptr;  // of file_, once there is one
  std::unique_ptr<store::ResultFile> file_;
  int session_ = 0;
};

// Called before the first block, so that no result can influence the decision.

/// The timed steps of a block with `steps: auto`, where a block takes `set_up_s` and a step `step_s`.
int auto_steps(double set_up_s, double step_s, int warmup_steps);
/// With `steps: auto`: as many timed steps as take three quarters of the time that a block of the baseline spends on
/// its set-up and warm-up. Shorter blocks waste the machine on set-up, longer ones leave too few of them to follow its
/// drift (docs/method.md, "Looks").
void decide_steps(Recorder& recorder, config::Measure& measure);
inline constexpr int most_auto_steps = 1000;
/// Reduces the rounds to what the time budget leaves after `spent_s` of preparation. A sweep that ends when all is
/// settled keeps its rounds: the clock ends it. Throws Error if too few rounds are left for any verdict.
void decide_rounds(Recorder& recorder, const config::Measure& measure, double spent_s);

}  // namespace harness::sweep
