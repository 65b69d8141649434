// The warm-up of GPUs and the deadlines of a block, on a job that is played.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "job/job.h"
#include "plan/prepare.h"
#include "support/played_job.h"
#include "sweep/rounds.h"
#include "sweep/untimed.h"

namespace harness::sweep {

namespace {

double start_deadline(config::BackendKind backend, int ranks, const config::Measure& measure = {}) {
  config::Experiment experiment;
  experiment.backend = backend;
  experiment.measure = measure;
  plan::PlannedCase planned;
  planned.layout = {{program::Axis::data, ranks}};
  return block_request(experiment, planned, job::TimeSteps{}, {}).deadlines.start_s;
}

TEST(BlockRequest, OnGpusTheUsualDeadlineOfAStartGrowsWithTheRanks) {
  using config::BackendKind;
  EXPECT_EQ(start_deadline(BackendKind::cpu, 1), 60);
  EXPECT_EQ(start_deadline(BackendKind::cpu, 1024), 60);
  double before = 60;
  for (const int ranks : {1, 2, 8, 128, 512}) {
    const double now = start_deadline(BackendKind::cuda, ranks);
    EXPECT_GT(now, before) << ranks;
    before = now;
  }
  EXPECT_GE(start_deadline(BackendKind::cuda, 128), 180);
  EXPECT_LE(start_deadline(BackendKind::cuda, 16384), 600);
  config::Measure given;
  given.deadlines.start_s = 45;
  given.usual_start = false;
  EXPECT_EQ(start_deadline(BackendKind::cuda, 128, given), 45);
}

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

struct Level {
  double clock_hz = nan, power_w = nan;
};

// Two GPUs, whose levels in each block after the first follow a script; its last line repeats. A step takes 0.1 s.
class WarmingJob : public test::PlayedJob {
 public:
  explicit WarmingJob(std::vector<std::pair<Level, Level>> script)
      : PlayedJob(std::vector<job::RankPlace>(2)), script_(std::move(script)) {}

  std::vector<job::BlockOutcome> run(const std::vector<job::BlockOnSet>& blocks) override {
    EXPECT_FALSE(blocks.at(0).last);
    const int count = std::get<job::TimeSteps>(blocks.at(0).request.task).steps;
    steps.push_back(count);
    clock_.now_s += 0.1 * count;
    job::BlockOutcome outcome;
    outcome.ok = std::ssize(steps) != fails_at;
    if (!outcome.ok) return {outcome};
    const std::size_t line = std::min(steps.size(), script_.size()) - 1;
    for (const Level& level : {script_[line].first, script_[line].second}) {
      job::TimedSamples timed;
      timed.step_s.assign(static_cast<std::size_t>(count), 0.1);
      timed.gpu.mean_sm_clock_hz = level.clock_hz;
      timed.gpu.mean_power_w = level.power_w;
      outcome.samples.emplace_back().task = timed;
    }
    return {outcome};
  }
  const Clock& clock() const override { return clock_; }

  std::vector<int> steps;  // of each block
  std::ptrdiff_t fails_at = 0;

 private:
  struct Virtual : Clock {
    double seconds() const override { return now_s; }
    double unix_s() const override { return now_s; }
    double now_s = 0;
  };

  std::vector<std::pair<Level, Level>> script_;
  Virtual clock_;
};

job::BlockRequest on(config::BackendKind backend) {
  job::BlockRequest request;
  request.backend = backend;
  return request;
}

constexpr Level cold{1.98e9, 300}, warm{1.80e9, 600}, near_warm{1.79e9, 610};

TEST(WarmUp, CpusTakeOneBlockOfOneStep) {
  WarmingJob job({{cold, cold}});
  EXPECT_TRUE(warm_up(job, {}, on(config::BackendKind::cpu)).settled);
  EXPECT_EQ(job.steps, std::vector<int>{1});
}

TEST(WarmUp, LastsUntilEveryGpuIsAsInTheBlockBefore) {
  // The second GPU takes a block longer. Blocks last a second.
  WarmingJob job({{}, {cold, cold}, {warm, cold}, {near_warm, warm}, {warm, near_warm}});
  EXPECT_TRUE(warm_up(job, {}, on(config::BackendKind::cuda)).settled);
  EXPECT_EQ(job.steps, (std::vector{1, 10, 10, 10, 10}));
}

TEST(WarmUp, OneOfTheTwoIsEnoughToSeeThatItIsNotOver) {
  for (const Level& other : {Level{1.98e9, 600}, Level{1.80e9, 300}}) {
    WarmingJob job({{}, {other, other}, {warm, warm}, {warm, warm}});
    warm_up(job, {}, on(config::BackendKind::cuda));
    EXPECT_EQ(job.steps.size(), 4u);
  }
}

TEST(WarmUp, EndsAfterTenSecondsAndSaysSo) {
  std::vector<std::pair<Level, Level>> script;
  for (int i = 0; i < 40; ++i) script.emplace_back(i % 2 == 0 ? cold : warm, warm);
  WarmingJob job(script);
  EXPECT_FALSE(warm_up(job, {}, on(config::BackendKind::cuda)).settled);
  EXPECT_EQ(job.steps.size(), 11u);
}

TEST(WarmUp, DoesNotWaitForWhatNobodyTells) {
  WarmingJob job({{Level{}, Level{}}});
  EXPECT_TRUE(warm_up(job, {}, on(config::BackendKind::cuda)).settled);
  EXPECT_EQ(job.steps, (std::vector{1, 10}));
}

TEST(WarmUp, ABlockThatFailsEndsIt) {
  for (std::ptrdiff_t at : {1, 2}) {
    WarmingJob job({{}, {cold, cold}, {warm, warm}});
    job.fails_at = at;
    EXPECT_FALSE(warm_up(job, {}, on(config::BackendKind::cuda)).last.ok);
    EXPECT_EQ(std::ssize(job.steps), at);
  }
}

}  // namespace

}  // namespace harness::sweep
