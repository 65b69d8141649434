#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/prepare.h"
#include "cli/progress.h"
#include "launch/job.h"
#include "store/result_file.h"
#include "workloads/limits.h"

namespace harness {

/// One `sweep` on rank 0: from a prepared plan to a finished result file. The steps are called in order.
class SweepRun {
 public:
  SweepRun(Job& job, Prepared prepared, ProgressLine& progress)
      : job_(job), prepared_(std::move(prepared)), progress_(progress) {}

  /// Timed workers start under this command ("" none); what they measure is then marked as such.
  void wrap_timed_workers(const std::string& command) { wrap_ = command; }
  /// Starts a worker everywhere: do all ranks have the same program, libraries and CPUs, and what is the peak?
  /// Throws Error naming whoever differs.
  void probe();
  /// Untimed workers that time what the backend leaves open (GPUs: algorithms of matrix products), for all blocks
  /// alike.
  void tune();
  /// One untimed worker per case with NCCL's log: what it really did.
  void observe();
  /// One untimed worker per case: timeline, and how long a block takes. A case that fails twice alike is dropped.
  void record_timelines();
  /// Fits the rounds into the budget of time, before there is a result to be tempted by.
  void decide_rounds();
  void create_file(const std::string& path, const std::string& command, bool overwrite);
  /// Takes an interrupted file up again. Throws Error if it is not of this configuration, ranks or programs.
  void resume_file(const std::string& path);
  void run_rounds();
  /// Writes the state. Returns it.
  RunState finish();

 private:
  struct CaseState {
    double block_seconds = 0;  // of its timeline block, a guess for the timed ones
    std::string last_failure;  // signature
    bool dropped = false;
  };
  BlockRequest request(int case_index, BlockMode mode) const;
  BlockOutcome run(int case_index, BlockMode mode);
  void note_failure(int case_index, const BlockOutcome& outcome);
  void keep_timeline(int case_index, const BlockOutcome& outcome);
  void keep_observation(int case_index, const BlockOutcome& outcome);
  void check_devices(const std::vector<BlockSamples>& samples) const;
  void write_block(int block, const BlockOutcome& outcome);
  void select_hardware(const std::string& device);
  void fill_limits();
  Links links_of(const Case& c) const;
  std::vector<int> nodes_of_ranks() const;
  void fill_peaks(const std::vector<BlockSamples>& samples);
  bool out_of_time(double next_seconds) const;
  std::vector<int> blocks_to_run() const;
  void warn(const std::string& text);

  Job& job_;
  Prepared prepared_;
  ProgressLine& progress_;
  Result result_ = planned_result(prepared_);
  std::vector<CaseState> states_ = std::vector<CaseState>(prepared_.plan.cases.size());
  std::vector<std::pair<std::string, std::string>> environment_;
  std::string wrap_;
  std::unique_ptr<ResultFile> file_;
  int session_ = 0;
  bool interrupted_ = false;
};

}  // namespace harness
