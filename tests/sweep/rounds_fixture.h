#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/random.h"
#include "job/job.h"
#include "plan/plan.h"
#include "store/lock.h"
#include "support/files.h"
#include "support/played_job.h"
#include "sweep/recorder.h"
#include "sweep/rounds.h"
#include "sweep/sweep.h"

namespace harness::sweep {

inline constexpr std::int64_t gibibyte = 1 << 30;

// Steps take the time of their case, with a little noise. A user stops the job after `stop_after` timed blocks.
class PlayedSweep : public test::PlayedJob {
 public:
  job::BlockOutcome run(const job::BlockOnSet& on) override {
    const job::BlockRequest& request = on.request;
    const std::string& name = request.case_name;
    job::BlockOutcome outcome;
    outcome.ok = true;
    if (std::holds_alternative<job::TimeSteps>(request.task) && request.environment.empty()) {
      ++warm_ups;
      outcome.ok = warms_up;
      outcome.reason = "it is cold";
      return outcome;
    }
    job::Samples samples;
    samples.peak_memory_bytes = needs_too_much.contains(name) ? 2 * gibibyte : gibibyte / 2;
    if (const auto* timed = std::get_if<job::TimeSteps>(&request.task)) {
      const int block = std::stoi(request.environment.back().second);
      measured.push_back(block);
      if (on.set.number != job::WorkerSet::alone || !on.last) ++shared;
      outcome.start_unix_s = 1e9 + static_cast<double>(measured.size());
      job::TimedSamples steps;
      for (int step = 0; step < request.warmup_steps + timed->steps; ++step) {
        const double scatter =
            0.001 * philox_normal(static_cast<std::uint64_t>(block), static_cast<std::uint64_t>(step)) +
            (noise - 0.001) * philox_normal(static_cast<std::uint64_t>(block), 1000);
        steps.step_s.push_back((step_s.contains(name) ? step_s.at(name) : 1) * std::exp(scatter));
      }
      if (!loss.empty()) steps.losses.assign(steps.step_s.size(), loss.contains(name) ? loss.at(name) : 1);
      samples.task = steps;
      if (fails.contains(name)) {
        outcome.ok = false;
        outcome.reason = "it failed";
        outcome.signature = "always the same";
      }
    } else {
      job::TimelineSamples timeline;
      timeline.step_s = 1;
      samples.task = timeline;
    }
    if (outcome.ok) outcome.samples = {samples};
    return outcome;
  }
  int stop_requests() const override { return stop_after > 0 && std::ssize(measured) >= stop_after ? 1 : 0; }

  std::map<std::string, double> step_s;
  std::map<std::string, float> loss;  // that of other cases is 1; empty: none
  std::set<std::string> needs_too_much, fails;
  double noise = 0.001;           // per block; the part above 0.001 is shared by all steps of the block
  std::ptrdiff_t stop_after = 0;  // 0: never
  std::vector<int> measured;      // numbers of timed blocks
  int shared = 0;                 // timed blocks in processes that others share
  int warm_ups = 0;               // of such processes
  bool warms_up = true;           // else all warm-ups fail
};

class Rounds : public ::testing::Test {
 protected:
  Rounds() {
    config::Experiment e;
    e.path = "sweep.yaml";
    e.model = {"custom", 1, 64, 4, 128, 16};
    for (const int size : {2, 4, 8}) {
      config::Change change{"micro_batch_size", std::to_string(size), e.baseline};
      change.settings.micro_batch_size = size;
      e.changes.push_back(change);
    }
    e.measure.memory_limit_bytes = gibibyte;
    e.measure.rounds = 12;
    e.measure.steps = 3;
    e.measure.warmup_steps = 1;
    experiment_ = e;
    job_.needs_too_much = {"micro_batch_size=4"};
    job_.step_s = {{"micro_batch_size=2", 1.5}, {"micro_batch_size=8", 0.7}};
  }

  // Runs one session: the part of a new `sweep`, or of `sweep --resume`, after the timelines. A user stops it after as
  // many timed blocks; 0: never. Returns its first timed round.
  int session(bool resume, std::ptrdiff_t stop_after = 0) {
    if (!resume) std::filesystem::remove(path_);
    job_.stop_after = stop_after;
    job_.measured.clear();
    plan::Plan plan = plan::prepare(experiment_, 1, {});
    plan::refuse_what_does_not_fit(plan, [&](const plan::PlannedCase& planned) {
      return plan::DeviceMemory{too_large_.contains(planned.name) ? 1.0 : 0.0, "this machine"};
    });
    std::ostringstream err;
    ProgressLine progress(err, ProgressStyle::blocks);
    Machine machine;
    machine.places = job_.places();
    Recorder recorder(planned_result(plan));
    const auto lock = store::Lock::take(path_);
    if (resume) {
      recorder.resume_file(*lock);
    } else {
      EXPECT_FALSE(record_timelines(job_, plan, {}, machine, recorder, progress));
      recorder.create_file(*lock, "harness sweep", false);
    }
    recorder.finish(run_rounds(job_, plan, {{}, wrap_}, recorder, progress, {}));
    said_ = err.str();
    return job_.measured.empty() ? -1 : file().blocks[static_cast<std::size_t>(job_.measured.front())].round;
  }
  store::Result file() const { return store::read_result(path_); }
  // Stops a sweep in round 1. As in one over the sizes of an operation, the blocks of a round share a process. Returns
  // those of round 1.
  std::vector<std::int32_t> stop_a_sweep_that_shares() {
    session(false, 6);
    store::Result sharing = file();
    std::vector<std::int32_t> second_round;
    for (std::int32_t i = 0; i < std::ssize(sharing.blocks); ++i) {
      store::ResultBlock& block = sharing.blocks[static_cast<std::size_t>(i)];
      block.process = 5 * block.round;
      if (block.round == 1 && sharing.at(block).name != "micro_batch_size=4") second_round.push_back(i);
    }
    store::write_result(path_, sharing);
    return second_round;
  }
  std::size_t count_of(const store::Result& result, const std::string& name, store::BlockStatus status) const {
    return static_cast<std::size_t>(std::ranges::count_if(result.blocks, [&](const store::ResultBlock& block) {
      return result.at(block).name == name && block.status == status;
    }));
  }

  const test::TemporaryFolder folder_;
  const std::string path_ = folder_ / "a.h5";
  config::Experiment experiment_;
  PlayedSweep job_;
  std::set<std::string> too_large_;  // cases that do not fit on the machine, which a plan elsewhere does not know
  std::string wrap_, said_;
};

}  // namespace harness::sweep
