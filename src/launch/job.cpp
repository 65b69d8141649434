#include "launch/job.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "launch/alarms.h"
#include "launch/block_run.h"
#include "launch/environment.h"
#include "launch/launcher.h"
#include "launch/messages.h"
#include "launch/ranks.h"
#include "launch/site.h"
#include "launch/stop_signals.h"

namespace harness::launch {
namespace {

class MpiJob final : public Job {
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
    count_stop_signals();
    site_ = find_site(*ranks_);
    places_ = gather_places(*ranks_, site_);
    if (ranks_->rank() == 0) environment_ = recorded_environment(own_environment());
  }

  int rank() const override { return ranks_->rank(); }
  int size() const override { return ranks_->size(); }
  const std::vector<RankPlace>& places() const override { return places_; }

  BlockOutcome run(const BlockRequest& request) override {
    if (request.layout.ranks() > size()) {
      fail("case {} needs {} ranks, but this job has {}", request.case_name, request.layout.ranks(), size());
    }
    BlockOutcome outcome = run_on_all(request);
    if (!lost_connections_ || stop_requests() > 0) return outcome;
    const std::string first = outcome.reason;
    outcome = run_on_all(request);  // new ports; whoever took the place of a rank may be gone
    if (outcome.ok) outcome.reason = "started again: " + first;
    if (lost_connections_)
      outcome.reason += "; so twice in a row: a process that is not of this job may have connected";
    return outcome;
  }

  int follow() override {
    for (;;) {
      std::string message;
      ranks_->broadcast(message, idle_);
      const auto order = decode<JobOrder>(message);
      if (order.kind == JobOrder::Kind::finish) return order.exit_code;
      block_ = order.block;
      run_here(order.request, order.environment);
    }
  }

  void finish(int exit_code) override {
    std::string message = encode(JobOrder{JobOrder::Kind::finish, exit_code, 0, {}, {}});
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

  double allocation_end_unix_s() const override {
    const auto text = harness::launch::own_environment("SLURM_JOB_END_TIME");
    std::int64_t seconds = 0;
    if (text) std::from_chars(text->data(), text->data() + text->size(), seconds);
    return static_cast<double>(seconds);
  }

 private:
  BlockOutcome run_on_all(const BlockRequest& request) {
    ++block_;
    std::string message = encode(JobOrder{JobOrder::Kind::run, 0, block_, environment_, request});
    ranks_->broadcast(message, idle_);
    return run_here(request, environment_);
  }
  BlockOutcome run_here(const BlockRequest& request, const NameValues& environment) {
    alarms_.begin_block(block_);
    BlockRun block(*ranks_, alarms_, site_, request, environment);
    BlockOutcome outcome = block.run();
    lost_connections_ = block.lost_connections();
    alarms_.end_block();
    return outcome;
  }

  std::unique_ptr<Ranks> ranks_;
  mutable Alarms alarms_;  // looking for news changes nothing that a caller can see
  Site site_;
  std::vector<RankPlace> places_;
  NameValues environment_;  // rank 0's, what may be recorded of it
  std::int64_t block_ = 0;
  bool lost_connections_ = false;  // in the last block
  Ranks::Idle idle_ = [this] { alarms_.look(); };
};

}  // namespace

std::unique_ptr<Job> Job::join() {
  // Asked before MPI starts: some libraries set such variables themselves.
  const Lookup lookup = [](const char* name) { return harness::launch::own_environment(name); };
  const auto claim = launcher_claim(lookup);
  return std::make_unique<MpiJob>(seconds_until_sigkill(lookup), claim);
}

}  // namespace harness::launch
