// A sweep that is stopped in its preparation, and resumed, also where somebody has removed its lock.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>

#include "job/job.h"
#include "plan/plan.h"
#include "store/columns.h"
#include "store/lock.h"
#include "store/result_file.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/played_job.h"
#include "sweep/recorder.h"
#include "sweep/sweep.h"

namespace harness::sweep {
namespace {

// Every step takes a second. A user stops the job in the first block that records a timeline, if asked to.
class StoppedInPreparation : public test::PlayedJob {
 public:
  job::BlockOutcome run(const job::BlockOnSet& block) override {
    const job::BlockRequest& request = block.request;
    if (loses_peers) throw job::PeersLost("rank 1 has not answered");
    if (!removes.empty()) std::filesystem::remove(removes);
    job::BlockOutcome outcome;
    outcome.ok = true;
    job::Samples& samples = outcome.samples.emplace_back();
    samples.task = job::ProbeSamples{};
    if (std::holds_alternative<job::RecordTimeline>(request.task)) {
      outcome.stopped = stops;
      outcome.ok = !stops;
      job::TimelineSamples timeline;
      timeline.step_s = 1;
      samples.task = timeline;
    } else if (const auto* timed = std::get_if<job::TimeSteps>(&request.task)) {
      job::TimedSamples steps;
      steps.step_s.assign(static_cast<std::size_t>(request.warmup_steps + timed->steps), 1.0);
      samples.task = steps;
    }
    return outcome;
  }
  int stop_requests() const override { return stops ? 1 : 0; }

  bool stops = true, loses_peers = false;
  std::filesystem::path removes;  // a file, at each block; "": none
};

config::Experiment two_rounds() {
  config::Experiment e;
  e.path = "sweep.yaml";
  e.model = {"custom", 1, 64, 4, 128, 16};
  e.measure.rounds = 2;
  e.measure.warmup_steps = 1;
  e.measure.auto_steps = true;
  return e;
}

TEST(Stopped, BeforeTheBaselinesStepIsKnownItBeginsAnew) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  StoppedInPreparation job;
  bool has_result = false;
  const auto session = [&](bool resume, bool more_rounds = false) {
    const auto lock = store::Lock::take(path);
    std::ostringstream err;
    ProgressLine progress(err, ProgressStyle::none);
    SweepOutput output{*lock};
    SweepRequest request;
    request.command = "harness sweep";
    request.resume = resume;
    request.more_rounds = more_rounds;
    try {
      return run_sweep(job, plan::prepare(two_rounds(), 1, {}), output, request, progress);
    } catch (const job::PeersLost&) {
      has_result = output.has_result;
      throw;
    }
  };
  EXPECT_EQ(session(false), store::RunState::partial);
  EXPECT_TRUE(store::read_result(path).splits.empty());
  job.loses_peers = true;
  EXPECT_THROW(session(true), job::PeersLost);
  EXPECT_TRUE(has_result);
  job.loses_peers = false;
  job.stops = false;
  EXPECT_EQ(session(true), store::RunState::complete);
  const store::Result result = store::read_result(path);
  EXPECT_EQ(result.steps, 3);  // the fewest of steps: auto, because set-up takes no time here
  EXPECT_FALSE(result.splits.empty());
  job.removes = path + ".lock";
  EXPECT_THAT(test::error_of([&] { session(true, true); }), ::testing::HasSubstr("was removed or renamed"));
}

TEST(Recorder, WarnsOnceInAllSessionsAndNotInAFileThatItHasLost) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "a.h5", longer_than_a_row(2 * store::warning_bytes, 'w');
  const plan::Plan plan = plan::prepare(two_rounds(), 1, {});
  const auto lock = store::Lock::take(path);
  Recorder first(planned_result(plan));
  first.create_file(*lock, "harness sweep", false);
  first.warn(longer_than_a_row);
  first.finish(true);
  const std::size_t warnings = store::read_result(path).warnings.size();
  Recorder second(planned_result(plan));
  second.resume_file(*lock);
  second.warn(longer_than_a_row);
  EXPECT_EQ(store::read_result(path).warnings.size(), warnings);
  std::filesystem::remove(path + ".lock");
  EXPECT_THAT(test::error_of([&] { second.warn("another"); }), ::testing::HasSubstr("was removed or renamed"));
  EXPECT_EQ(store::read_result(path).warnings.size(), warnings);
}

}  // namespace
}  // namespace harness::sweep
