#include "job/mpi/mpi_job.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "job/environment.h"
#include "job/messages.h"
#include "job/mpi/alarms.h"
#include "job/mpi/block_run.h"
#include "job/mpi/launcher.h"
#include "job/mpi/ranks.h"
#include "job/mpi/site.h"
#include "job/stop_signals.h"

namespace harness::mpi {
namespace {

class MpiJob final : public job::Job {
 public:
  explicit MpiJob(double seconds_until_sigkill, const std::optional<LauncherClaim>& claim)
      : ranks_(Ranks::start()), alarms_(*ranks_, seconds_until_sigkill) {
    try {
      check_launch(claim, ranks_->size(), ranks_->library());
    } catch (const Error& e) {
      // mpirun kills the job when the first process exits, so processes without a message wait a second for the one
      // that has it.
      if (*e.what() == '\0') std::this_thread::sleep_for(std::chrono::seconds(1));
      throw;
    }
    job::count_stop_signals();
    site_ = find_site(*ranks_);
    places_ = gather_places(*ranks_, site_);
    if (ranks_->rank() == 0) environment_ = job::recorded_environment(job::own_environment());
  }

  int rank() const override { return ranks_->rank(); }
  int size() const override { return ranks_->size(); }
  const std::vector<job::RankPlace>& places() const override { return places_; }

  std::vector<std::vector<job::BlockOutcome>> run(const std::vector<job::WorkerSet>& sets) override {
    std::vector<std::vector<job::BlockOutcome>> outcomes;
    for (const job::WorkerSet& set : sets) {
      if (set.blocks.size() != 1) fail("a worker set of {} blocks: these workers run one (a bug)", set.blocks.size());
      outcomes.push_back({run_block(set)});
    }
    return outcomes;
  }

  int follow() override {
    for (;;) {
      std::string message;
      ranks_->broadcast(message, idle_);
      const auto order = job::decode<job::JobOrder>(message);
      if (order.kind == job::JobOrder::Kind::finish) return order.exit_code;
      block_ = order.block;
      run_here(order.set, order.environment);
    }
  }

  void finish(int exit_code) override {
    std::string message = job::encode(job::JobOrder{job::JobOrder::Kind::finish, exit_code, 0, {}, {}});
    ranks_->broadcast(message, idle_);
  }

  void leave() override {
    alarms_.close();
    ranks_->finish();
  }

  int stop_requests() const override {
    alarms_.look();
    return alarms_.stop_level();
  }

  const Clock& clock() const override { return system_clock(); }

  double allocation_end_unix_s() const override {
    const auto text = own_environment("SLURM_JOB_END_TIME");
    std::int64_t seconds = 0;
    if (text) std::from_chars(text->data(), text->data() + text->size(), seconds);
    return static_cast<double>(seconds);
  }

 private:
  job::BlockOutcome run_block(const job::WorkerSet& set) {
    const job::BlockRequest& request = set.blocks.front();
    const int wanted = request.layout.ranks();
    if (wanted > size()) fail("case {} needs {} ranks, but this job has {}", request.case_name, wanted, size());
    job::BlockOutcome outcome = run_on_all(set);
    if (!lost_connections_ || stop_requests() > 0) return outcome;
    const std::string first = outcome.reason;
    outcome = run_on_all(set);  // new ports; whoever took the place of a rank may be gone
    if (outcome.ok) outcome.reason = "started again: " + first;
    if (lost_connections_)
      outcome.reason += "; so twice in a row: a process that is not of this job may have connected";
    return outcome;
  }
  job::BlockOutcome run_on_all(const job::WorkerSet& set) {
    ++block_;
    std::string message = encode(job::JobOrder{job::JobOrder::Kind::run, 0, block_, environment_, set});
    ranks_->broadcast(message, idle_);
    return run_here(set, environment_);
  }
  job::BlockOutcome run_here(const job::WorkerSet& set, const NameValues& environment) {
    const job::BlockRequest& request = set.blocks.front();
    const Members members(set.ranks, request.layout.ranks());
    alarms_.begin_block(block_);
    BlockRun block(*ranks_, alarms_, site_, members, request, environment);
    job::BlockOutcome outcome = block.run();
    lost_connections_ = block.lost_connections();
    alarms_.end_block();
    return outcome;
  }

  std::unique_ptr<Ranks> ranks_;
  mutable Alarms alarms_;  // looking for news changes nothing that a caller can see
  Site site_;
  std::vector<job::RankPlace> places_;
  NameValues environment_;  // rank 0's, what may be recorded of it
  std::int64_t block_ = 0;
  bool lost_connections_ = false;  // in the last block
  Ranks::Idle idle_ = [this] { alarms_.look(); };
};

}  // namespace

std::unique_ptr<job::Job> join() {
  // Asked before MPI starts: some libraries set such variables themselves.
  const Lookup lookup = [](const char* name) { return own_environment(name); };
  const auto claim = launcher_claim(lookup);
  return std::make_unique<MpiJob>(seconds_until_sigkill(lookup), claim);
}

}  // namespace harness::mpi
