// Measured peaks on machines whose truth is known: the best measurement counts, in every session.
#include "sweep/probe.h"

#include <gtest/gtest.h>

#include <functional>

#include "support/files.h"
#include "support/played_job.h"

namespace harness::sweep {
namespace {

plan::PlannedCase planned(const std::string& name, int ranks, int threads = 0) {
  plan::PlannedCase made;
  made.name = name;
  made.layout.size = {1, 1, ranks, 1};
  made.settings.threads = threads;
  return made;
}

plan::Plan plan_of(std::vector<plan::PlannedCase> cases) {
  plan::Plan plan;
  plan.cases = std::move(cases);
  plan.ranks = plan.cases.front().layout.ranks();
  return plan;
}

job::Samples reached(double flops) {
  return {job::ProbeSamples{{}, "", flops, ""}, {}, 0, {}};
}

// Every rank of a block reaches what `flops` says of its request and of the blocks before it.
class FakeJob : public test::PlayedJob {
 public:
  using Flops = std::function<double(const job::BlockRequest&, int)>;
  explicit FakeJob(Flops flops) : flops_(std::move(flops)) {}

  job::BlockOutcome run(const job::BlockOnSet& block) override {
    const job::BlockRequest& request = block.request;
    EXPECT_TRUE(std::holds_alternative<job::Probe>(request.task));
    job::BlockOutcome outcome;
    const double flops = flops_(request, blocks_run++);
    outcome.ok = flops > 0;
    for (int rank = 0; rank < request.layout.ranks() && outcome.ok; ++rank) outcome.samples.push_back(reached(flops));
    return outcome;
  }
  int stop_requests() const override { return stops; }
  double allocation_end_unix_s() const override { return end_unix_s; }

  int blocks_run = 0, stops = 0;
  double end_unix_s = 0;

 private:
  Flops flops_;
};

TEST(Peaks, TheBestMeasurementCounts) {
  const plan::Plan plan = plan_of({planned("baseline", 2)});
  Peaks peaks;
  FakeJob job([](const auto&, int block) { return block == 1 ? 30e9 : 10e9; });
  std::vector<double> after;
  for (int time = 0; time < 3; ++time) {
    measure_peaks(job, plan, peaks);
    after.push_back(peaks.of(plan.cases[0]));
  }
  EXPECT_EQ(after, (std::vector{10e9, 30e9, 30e9}));
}

TEST(Peaks, EveryUseOfTheMachineIsMeasuredOnce) {
  plan::PlannedCase impossible = planned("tp", 3);
  impossible.impossible = "3 heads";
  plan::PlannedCase bf16 = planned("precision=bf16", 4);
  bf16.settings.precision = config::Precision::bf16;
  const plan::Plan plan =
      plan_of({planned("baseline", 4), planned("baseline_again", 4), planned("bucket_size=1 MiB", 4),
               planned("ranks=1", 1), planned("threads=2", 4, 2), planned("threads=1", 4, 1), impossible, bf16});
  Peaks peaks;
  FakeJob job([](const auto&, int) { return 1e9; });
  measure_peaks(job, plan, peaks);
  EXPECT_EQ(job.blocks_run, 5);  // 4 ranks as they come, of 2 threads and of 1; 1 rank; bf16
}

TEST(Peaks, RanksOfUnlikeNodesHaveTheirMean) {
  Peaks peaks;
  peaks.add({4, 0, 0, config::Precision::fp32}, {reached(10e9), reached(10e9), reached(30e9), reached(30e9)});
  EXPECT_EQ(peaks.of(planned("baseline", 4)), 20e9);
  EXPECT_EQ(peaks.of(planned("ranks=2", 2)), 0);
}

TEST(Peaks, AFailureAStopAndTheEndOfTheAllocationLeaveThemAsTheyAre) {
  const plan::Plan plan = plan_of({planned("baseline", 2)});
  Peaks peaks;
  FakeJob job([](const auto&, int block) { return block == 0 ? 10e9 : 0.0; });
  measure_peaks(job, plan, peaks);
  measure_peaks(job, plan, peaks);
  EXPECT_EQ(job.blocks_run, 2);
  EXPECT_EQ(peaks.of(plan.cases[0]), 10e9);
  job.stops = 1;
  measure_peaks(job, plan, peaks);
  job.stops = 0;
  job.end_unix_s = 1;
  measure_peaks(job, plan, peaks);
  EXPECT_EQ(job.blocks_run, 2);
}

TEST(Peaks, WhatTheConfigurationSaysIsNotMeasured) {
  plan::Plan plan = plan_of({planned("baseline", 2)});
  FakeJob job([](const auto&, int) { return 10e9; });
  Peaks peaks;
  plan.experiment.peak_flops = 1e12;
  measure_peaks(job, plan, peaks);
  plan.experiment.peak_flops = 0;
  plan.experiment.without_hardware = true;
  measure_peaks(job, plan, peaks);
  plan.experiment.without_hardware = false;
  plan.experiment.backend = config::BackendKind::cuda;
  measure_peaks(job, plan, peaks);
  EXPECT_EQ(job.blocks_run, 0);
}

// The file's peak: raised by what is measured after the rounds and by a later session, lowered by nothing.
TEST(Peaks, TheFileHoldsTheBestOfAllSessions) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "peaks.h5";
  const plan::Plan plan = plan_of({planned("baseline", 2)});
  store::Result result;
  result.backend = "cpu";
  result.ranks = 2;
  result.rounds = result.steps = 1;
  result.cases.emplace_back().name = "baseline";
  result.blocks.emplace_back();
  fill_peaks(result, plan);
  EXPECT_TRUE(result.peak_source.starts_with("measured"));
  const auto measured = [&](double flops) {
    Peaks peaks;
    FakeJob job([&](const auto&, int) { return flops; });
    measure_peaks(job, plan, peaks);
    return peaks;
  };
  const auto in_file = [&] { return store::read_result(path).cases[0].peak_flops_per_rank; };

  const auto lock = store::Lock::take(path);
  Recorder first(result);
  raise_peaks(first, plan, measured(10e9));
  first.create_file(*lock, "", false);
  EXPECT_EQ(in_file(), 10e9);
  raise_peaks(first, plan, measured(30e9));
  EXPECT_EQ(in_file(), 30e9);
  raise_peaks(first, plan, measured(20e9));
  EXPECT_EQ(in_file(), 30e9);
  first.finish(true);

  Recorder second(result);
  raise_peaks(second, plan, measured(5e9));
  second.resume_file(*lock);
  raise_peaks(second, plan, measured(20e9));
  EXPECT_EQ(in_file(), 30e9);
  raise_peaks(second, plan, measured(40e9));
  EXPECT_EQ(in_file(), 40e9);
  second.finish(true);
}

}  // namespace
}  // namespace harness::sweep
