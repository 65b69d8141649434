// The first workers of a job, reasons to stop a sweep before they start, and measured peaks on machines with known
// truth.
#include "sweep/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include "plan/plan.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/played_job.h"
#include "sweep/rounds.h"

namespace harness::sweep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Each start fails in the next way of the list; "", or the end of the list: it succeeds.
class FailingJob : public test::PlayedJob {
 public:
  explicit FailingJob(std::vector<std::string> ways) : ways_(std::move(ways)) {}
  job::BlockOutcome run(const job::BlockOnSet& /*block*/) override {
    const std::string way = starts < ways_.size() ? ways_[starts] : "";
    ++starts;
    job::BlockOutcome outcome;
    outcome.ok = way.empty();
    outcome.reason = outcome.signature = way;
    outcome.stopped = way == "stopped";
    if (outcome.ok) outcome.samples.resize(1);
    if (outcome.ok) outcome.samples[0].task = job::ProbeSamples{};
    return outcome;
  }
  std::size_t starts = 0;

 private:
  std::vector<std::string> ways_;
};

plan::Plan planned() {
  config::Experiment e;
  e.path = "sweep.yaml";
  e.model = {"custom", 1, 64, 4, 128, 16};
  return plan::prepare(e, 1, {});
}

TEST(Probe, AWorkerThatIsKilledOnceIsStartedAgain) {
  FailingJob job({"killed"});
  EXPECT_THAT(probe(job, planned()).warnings,
              ElementsAre("the first workers of the job failed and were started again: killed"));
  FailingJob twice({"killed", "hung"});
  EXPECT_EQ(probe(twice, planned()).warnings.size(), 2u);
  EXPECT_EQ(twice.starts, 3u);
  FailingJob never({});
  EXPECT_TRUE(probe(never, planned()).warnings.empty());
}

TEST(Probe, WhatFailsAgainInTheSameWayOrInEverNewOnesIsSaid) {
  FailingJob alike({"killed", "killed"});
  EXPECT_THAT(test::error_of([&] { probe(alike, planned()); }), HasSubstr("each time that they were started"));
  EXPECT_EQ(alike.starts, 2u);
  FailingJob other({"killed", "hung", "burnt"});
  EXPECT_THAT(test::error_of([&] { probe(other, planned()); }), HasSubstr("burnt"));
  EXPECT_EQ(other.starts, 3u);
  FailingJob stopped({"stopped"});
  test::error_of([&] { probe(stopped, planned()); });
  EXPECT_EQ(stopped.starts, 1u) << "who stops the job does not want another try";
}

TEST(Identity, WhoDiffersIsNamed) {
  std::vector<job::RankPlace> places(4);
  for (std::size_t i = 0; i < 4; ++i) places[i].host = "node" + std::to_string(i / 2);
  const NameValues usual = {{"oneDNN", "3.1"}, {"CPU", "x"}};
  EXPECT_TRUE(compare_identities({usual, usual, usual, usual}, places).empty());
  EXPECT_TRUE(compare_identities({}, places).empty());
  const auto lines = compare_identities({usual, usual, usual, {{"oneDNN", "2.6.3"}}}, places);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "CPU: x on 3 ranks, but absent on rank 3 (node1)");
  EXPECT_EQ(lines[1], "oneDNN: 3.1 on 3 ranks, but 2.6.3 on rank 3 (node1)");
}

TEST(Identity, RankZeroWinsATieAndLongListsAreCut) {
  const auto tie = compare_identities({{{"a", "2"}}, {{"a", "1"}}}, std::vector<job::RankPlace>(2));
  ASSERT_EQ(tie.size(), 1u);
  EXPECT_EQ(tie[0].substr(0, 17), "a: 2 on 1 ranks, ");
  std::vector<NameValues> many(40, NameValues{{"a", "1"}});
  for (std::size_t i = 25; i < 40; ++i) many[i][0].second = "2";
  const auto lines = compare_identities(many, std::vector<job::RankPlace>(40));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("rank 32"));
  EXPECT_THAT(lines[0], HasSubstr("7 more"));
}

using ::testing::EndsWith;
using ::testing::Not;
using Names = std::vector<std::string>;

// Places `ranks` ranks on each of `nodes` nodes, each of which sees these GPUs.
std::vector<job::RankPlace> places(int nodes, int ranks, int on_node, const std::vector<Names>& by_local_rank) {
  std::vector<job::RankPlace> all;
  for (int node = 0; node < nodes; ++node) {
    for (int local = 0; local < ranks; ++local) {
      job::RankPlace p;
      p.rank = static_cast<int>(all.size());
      p.node = node;
      p.host = "node" + std::to_string(node);
      p.gpus.on_node = on_node;
      p.gpus.names = by_local_rank[static_cast<std::size_t>(local) % by_local_rank.size()];
      p.gpus.count = static_cast<int>(p.gpus.names.size());
      all.push_back(p);
    }
  }
  return all;
}

// Returns the message of require_gpus(); "" if it does not throw.
std::string refusal(const std::vector<job::RankPlace>& all, bool share_gpus, const std::string& config) {
  return test::error_of([&] { require_gpus(all, share_gpus, config); });
}

TEST(RequireGpus, NoGpusAreOneMessage) {
  const std::string message = refusal(places(16, 8, 0, {{}}), false, "configs/16node.yaml");
  EXPECT_THAT(message, HasSubstr("see none on node0, node1, "));
  EXPECT_THAT(message, HasSubstr("8 more: run `nvidia-smi`"));
  EXPECT_THAT(message, HasSubstr("`harness plan configs/16node.yaml --ranks 128`"));
  EXPECT_THAT(message, HasSubstr("`backend: cpu`"));
  EXPECT_THAT(message, Not(HasSubstr("\n")));
  EXPECT_NE(refusal(places(1, 1, 0, {{}}), true, "a"), "") << "nothing to share";
  auto one = places(3, 2, 2, {{"0", "1"}});
  one[2].gpus = one[3].gpus = {0, 0, {}};
  EXPECT_THAT(refusal(one, false, "a.yaml"), HasSubstr("see none on node1:"));
}

TEST(RequireGpus, EveryRankHasAGpuOfItsOwn) {
  EXPECT_EQ(refusal(places(2, 4, 4, {{"0", "1", "2", "3"}}), false, "a"), "");
  EXPECT_EQ(refusal(places(2, 2, 4, {{"0", "1", "2", "3"}}), false, "a"), "");
  const std::string crowded = refusal(places(2, 4, 2, {{"0", "1"}}), false, "a");
  EXPECT_THAT(crowded, HasSubstr("node0 has 4 ranks and 2 GPUs, node1 has 4 ranks and 2 GPUs"));
  EXPECT_THAT(crowded, HasSubstr("measure.share_gpus=true"));
  EXPECT_EQ(refusal(places(2, 4, 2, {{"0", "1"}}), true, "a"), "");
}

// calibrate has neither --set nor a plan.
TEST(RequireGpus, WithoutASweepNothingHelpsThatOnlySweepsHave) {
  EXPECT_THAT(refusal(places(1, 1, 0, {{}}), false, ""), EndsWith("the container's GPU options"));
  EXPECT_THAT(refusal(places(1, 2, 1, {{"0"}}), false, ""), EndsWith("visible (CUDA_VISIBLE_DEVICES)"));
}

TEST(RequireGpus, ALauncherMayShowEachTaskItsOwnGpu) {
  EXPECT_EQ(refusal(places(2, 2, 8, {{"3"}, {"5"}}), false, "a"), "");
  EXPECT_EQ(refusal(places(1, 2, 8, {{"0 of task 0"}, {"0 of task 1"}}), false, "a"), "");
  EXPECT_EQ(refusal(places(1, 4, 8, {{"0", "1"}, {"2", "3"}}), false, "a"), "");
  EXPECT_THAT(refusal(places(1, 2, 8, {{"3"}}), false, "a"), HasSubstr("2 ranks and 1 GPU."));
}

TEST(RequireGpus, WhatCannotBeToldIsLeftToTheWorkers) {
  auto all = places(1, 8, 1, {{"0"}});
  for (job::RankPlace& p : all) p.gpus = {};
  EXPECT_EQ(refusal(all, false, "a"), "");
}

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
  return {job::ProbeSamples{{}, "", flops}, {}, 0, {}};
}

// Every rank of a block reaches `flops(request, number of earlier blocks)`.
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
  EXPECT_EQ(job.blocks_run, 5);  // 4 ranks with default, 2 and 1 threads; 1 rank; bf16
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

// The file's peak rises with measurements after the rounds and in later sessions, and never falls.
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
