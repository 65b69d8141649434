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

/// Adds doctor's record. A finding about a case also becomes a note on the case.
void add_record(store::Result& result, const store::DoctorRecord& doctor);

/// A scheduled block before its measurement.
store::ResultBlock pending_block(const plan::Slot& slot);

/// An upper bound on the size of this plan's result, without doctor's findings, in bytes. It is known before anything
/// runs: it assumes the most steps of `steps: auto` and whole timelines of every case. Throws Error if `timeline: all`
/// would keep more intervals than a reader can hold.
std::int64_t needed_space(const plan::Plan& plan);

/// The state of a case while a sweep runs.
struct CaseState {
  // From its last block, to estimate the next: the start and set-up of its workers, and one step.
  double set_up_s = 0, step_s = 0;
  std::string last_failure;  // signature
};

/// The growing result of a sweep, and its file once created. Rank 0 only.
class Recorder {
 public:
  explicit Recorder(store::Result planned) : result_(std::move(planned)), states_(result_.cases.size()) {}

  const store::Result& result() const { return result_; }
  /// The result, writable until the file is created.
  store::Result& draft() { return result_; }
  /// Whether the case was neither dropped nor refused.
  bool may_run(std::size_t case_index) const { return store::may_run(result_.cases[case_index].status); }
  CaseState& state(std::size_t case_index) { return states_[case_index]; }
  const CaseState& state(std::size_t case_index) const { return states_[case_index]; }

  void warn(const std::string& text);
  void warn(const std::vector<std::string>& texts) {
    for (const std::string& text : texts) warn(text);
  }

  /// Creates the file. Throws Error like ResultFile::create(). The lock must outlive the recorder.
  void create_file(const store::Lock& lock, const std::string& command, bool overwrite);
  /// Continues a file that create_file() made in an earlier session. Throws Error if it is complete, or if its
  /// configuration, ranks or programs differ. Facts stay those of the first session. An interrupted round is measured
  /// again as a whole, because its blocks must share an allocation: in memory none of it counts as measured, while the
  /// file keeps its blocks until they are replaced or moved to another process. Returns whether the libraries or the
  /// machine have changed.
  bool resume_file(const store::Lock& lock);
  /// Throws Error if another sweep has taken over the file; nothing more may be written to it then.
  void require_lock() const { lock_->require(); }

  /// Marks a planned case as impossible, because it does not fit.
  void refuse(std::size_t case_index, const std::string& reason) {
    result_.cases[case_index].status = store::CaseStatus::impossible;
    result_.cases[case_index].reason = reason;
    write_case(case_index);
  }
  /// Records a failed block. Drops the case if it failed in the same way before, or if this was its last try.
  void note_failure(std::size_t case_index, const job::BlockOutcome& outcome, bool last_try = false);
  /// Moves these pending blocks to a process other than planned: one for all of them, numbered by the first block. Also
  /// in the file, where they are pending then: after a kill, a resumed sweep must not share the planned process.
  void move_to_new_process(std::span<const std::size_t> block_indices);
  /// Writes a timed block, whether it succeeded or not. Returns the median of its timed steps, NaN if it failed.
  double write_block(std::size_t block_index, const job::BlockOutcome& outcome);
  /// Notes that a block will never be measured, and why.
  void leave_out(std::size_t block_index, const std::string& reason);
  /// The estimated duration of a block of this case.
  double expected_block_s(std::size_t case_index) const {
    const CaseState& state = states_[case_index];
    return state.set_up_s + state.step_s * (result_.warmup_steps + result_.steps);
  }
  /// That of the blocks that will still run, of the rounds before this one.
  double expected_s(int end_round) const;
  /// Raises the case's measured peak, FLOP/s of a rank, if this one is larger; also in the file.
  void raise_peak(std::size_t case_index, double flops);
  /// Writes the state and closes the file. `interrupted`: some blocks were not tried.
  store::RunState finish(bool interrupted);

 private:
  void reopen_block(std::size_t block_index);
  void write_case(std::size_t case_index) {
    if (!file_) return;
    require_lock();
    file_->write_case(static_cast<int>(case_index), result_.cases[case_index]);
  }

  store::Result result_;
  std::vector<CaseState> states_;
  const store::Lock* lock_ = nullptr;  // of file_, once created
  std::unique_ptr<store::ResultFile> file_;
  int session_ = 0;
};

// Called before the first block, so that no measurement can influence the decision.

/// The number of timed steps of a block with `steps: auto`, given the set-up time and the step time.
int auto_steps(double set_up_s, double step_s, int warmup_steps);
/// With `steps: auto`: chooses as many timed steps as take three quarters of the time of a baseline block's set-up and
/// warm-up. Shorter blocks waste the machine on set-up; longer ones are too few to follow its drift (docs/method.md,
/// "Looks"). Returns whether it chose: not before a step of the baseline is known.
bool decide_steps(Recorder& recorder, config::Measure& measure);
inline constexpr int most_auto_steps = 1000;
/// Reduces the rounds to those that fit in the time budget after `spent_s` of preparation. A sweep with looks keeps its
/// rounds, because the clock ends it. If too few are left for any verdict, throws Error; a sweep whose preparation was
/// `interrupted` keeps as many as a verdict needs instead, because its times are partly estimates.
void decide_rounds(Recorder& recorder, const config::Measure& measure, double spent_s, bool interrupted);

}  // namespace harness::sweep
