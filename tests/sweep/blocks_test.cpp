// What a block is asked for, and its warm-up.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "job/job.h"
#include "plan/plan.h"
#include "support/played_job.h"
#include "sweep/rounds.h"

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

// A step takes step_s on one rank and half as long on the other.
class WarmingJob : public test::PlayedJob {
 public:
  WarmingJob() : PlayedJob(std::vector<job::RankPlace>(2)) {}

  job::BlockOutcome run(const job::BlockOnSet& block) override {
    EXPECT_FALSE(block.last);
    const int count = std::get<job::TimeSteps>(block.request.task).steps;
    steps.push_back(count);
    job::BlockOutcome outcome;
    outcome.ok = std::ssize(steps) != fails_at;
    for (const double seconds : {step_s / 2, step_s}) {
      job::TimedSamples timed;
      timed.step_s.assign(static_cast<std::size_t>(count), seconds);
      outcome.samples.emplace_back().task = timed;
    }
    return outcome;
  }

  std::vector<int> steps;  // by block
  std::ptrdiff_t fails_at = 0;
  double step_s = 0.1;
};

TEST(WarmUp, IsOneStepAndOnGpusThreeSecondsMore) {
  for (const auto& [backend, steps] : {std::pair{config::BackendKind::cpu, std::vector{1}},
                                       std::pair{config::BackendKind::cuda, std::vector{1, 30}}}) {
    for (const std::ptrdiff_t fails_at : {0, 1, 2}) {
      WarmingJob job;
      job.fails_at = fails_at;
      job::BlockRequest request;
      request.backend = backend;
      const bool fails = fails_at > 0 && fails_at <= std::ssize(steps);
      EXPECT_EQ(warm_up(job, {}, request).ok, !fails);
      EXPECT_EQ(job.steps, fails_at == 1 ? std::vector{1} : steps);
    }
  }
}

TEST(WarmUp, HasNoMoreStepsThanAWorkerKeepsLossesOf) {
  WarmingJob job;
  job.step_s = 1e-4;
  job::BlockRequest request;
  request.backend = config::BackendKind::cuda;
  request.warmup_steps = 2;
  EXPECT_TRUE(warm_up(job, {}, request).ok);
  EXPECT_EQ(job.steps, (std::vector{1, 4094}));
}

}  // namespace

}  // namespace harness::sweep
