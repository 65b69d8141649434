#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "job/job.h"
#include "job/mpi/fault.h"
#include "job/mpi/node.h"
#include "job/mpi/ranks.h"
#include "job/mpi/worker_process.h"

namespace harness::mpi {

/// One block as one supervisor sees it. Every rank of the job calls run(), whether it takes part or not, and all make
/// the same collective calls whatever happens to their workers. A fault on any rank only ends the waits between these
/// calls early.
class BlockRun {
 public:
  /// `members`: as many ranks as the request's layout has. `worker`: this rank's worker in the set; null: run() starts
  /// one. It is null again after the `last` block or a failure.
  BlockRun(Ranks& ranks, Alarms& alarms, const Site& site, const Members& members,
           std::unique_ptr<WorkerProcess>& worker, const job::BlockOnSet& block, const NameValues& rank0_environment);
  /// Collective. The returned value is valid on rank 0 only.
  job::BlockOutcome run();

 private:
  using Clock = std::chrono::steady_clock;
  /// A worker's own messages wake its supervisor at once; messages from other ranks are polled at this interval. Each
  /// poll takes about 40 us of a core that a timed step may need.
  static constexpr double watching_interval_s = 0.05;
  /// The polling interval of a rank that sits the block out: the collectives of the other ranks may wait for it.
  static constexpr double idle_interval_s = 0.01;
  /// For an answer to `ask`, from a thread that sleeps until then.
  static constexpr double answer_patience_s = 1.0;

  void start_worker();
  void order_block();
  void rendezvous();
  bool agree_to_go();
  void watch_steps();
  bool agree_on_success();
  void end_worker(bool success);
  bool ends_by_itself();
  void agree_on_profiled_step(int steps);
  job::BlockOutcome collect(bool success);

  /// Waits until the worker has sent `wanted`, a fault occurred on any rank, or `limit_s` has passed.
  bool await(job::FrameType wanted, double limit_s);
  void look(double max_wait_s);
  void read_frames();
  void notice_end();
  void check_memory();
  void reached(job::WorkerPhase phase);
  bool over() const { return report_.kind != FaultKind::none || alarms_.current() != Alarm::none; }
  void blame(FaultKind kind, std::string_view text, Alarm alarm = Alarm::stop, std::int32_t code = 0);
  void examine();

  Ranks& ranks_;
  Alarms& alarms_;
  const Site& site_;
  const Members& members_;
  const job::BlockRequest& request_;
  bool last_;
  const NameValues& rank0_environment_;
  Ranks::Idle idle_;
  std::optional<int> number_;  // of this rank in the layout; nothing: it sits the block out
  Share share_;
  double cpu_before_s_ = 0;  // of the worker, until this block
  double cpu_s_ = 0;         // of the worker in this block
  std::unique_ptr<WorkerProcess>& worker_;
  bool watching_ = false;  // the end of the worker would be a fault
  std::map<job::FrameType, std::string> arrived_;
  std::uint64_t progress_answers_ = 0;
  job::WorkerProgress progress_;  // as far as known here
  bool had_last_words_ = false;   // progress_ is the crashing worker's own
  Clock::time_point progress_changed_, spawned_, memory_checked_;
  std::uint64_t program_hash_ = 0;
  RankReport report_;
  job::BlockOutcome outcome_;
};

}  // namespace harness::mpi
