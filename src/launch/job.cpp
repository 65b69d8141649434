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
#include "launch/ranks.h"
#include "launch/site.h"
#include "launch/stop_signals.h"
#include "launch/wire.h"

namespace harness {
namespace {

enum class Command : std::int32_t { run, finish };

class MpiJob final : public Job {
 public:
  explicit MpiJob(double seconds_until_sigkill, const std::optional<LauncherClaim>& claim)
      : ranks_(Ranks::start()), alarms_(*ranks_, seconds_until_sigkill) {
    try {
      check_launch(claim, ranks_->size(), ranks_->library());
    } catch (const Error& e) {
      // A launcher ends all when the first ends: the one that has something to say must not be the last to say it.
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
      fail("case {} needs {} ranks, this job has {}", request.case_name, request.layout.ranks(), size());
    }
    WireWriter out;
    out.put(Command::run);
    out.put(++block_);
    out.put(environment_);
    out.put(encode(request));
    std::string message = out.take();
    ranks_->broadcast(message, idle_);
    return run_here(request, environment_);
  }

  int follow() override {
    for (;;) {
      std::string message;
      ranks_->broadcast(message, idle_);
      WireReader in(message);
      Command command{};
      in.get(command);
      in.get(block_);
      if (command == Command::finish) return static_cast<int>(block_);
      NameValues environment;
      std::string request;
      in.get(environment);
      in.get(request);
      run_here(decode_request(request), environment);
    }
  }

  void finish(int exit_code) override {
    WireWriter out;
    out.put(Command::finish);
    out.put(static_cast<std::int64_t>(exit_code));
    std::string message = out.take();
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
    const auto text = harness::own_environment("SLURM_JOB_END_TIME");
    std::int64_t seconds = 0;
    if (text) std::from_chars(text->data(), text->data() + text->size(), seconds);
    return static_cast<double>(seconds);
  }

 private:
  BlockOutcome run_here(const BlockRequest& request, const NameValues& environment) {
    alarms_.begin_block(block_);
    BlockOutcome outcome = BlockRun(*ranks_, alarms_, site_, request, environment).run();
    alarms_.end_block();
    return outcome;
  }

  std::unique_ptr<Ranks> ranks_;
  mutable Alarms alarms_;  // looking for news changes nothing that a caller can see
  Site site_;
  std::vector<RankPlace> places_;
  NameValues environment_;  // rank 0's, what may be recorded of it
  std::int64_t block_ = 0;
  Ranks::Idle idle_ = [this] { alarms_.look(); };
};

}  // namespace

std::unique_ptr<Job> Job::join() {
  // Asked before MPI starts: some libraries set such variables themselves.
  const Lookup lookup = [](const char* name) { return harness::own_environment(name); };
  const auto claim = launcher_claim(lookup);
  return std::make_unique<MpiJob>(seconds_until_sigkill(lookup), claim);
}

}  // namespace harness
