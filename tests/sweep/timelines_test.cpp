#include "sweep/timelines.h"

#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "analysis/breakdown.h"
#include "plan/prepare.h"
#include "program/lower.h"
#include "simulated_step.h"
#include "store/result_file.h"
#include "support/played_job.h"
#include "support/temporary_folder.h"
#include "sweep/planned_result.h"
#include "workloads/workload.h"

namespace harness::sweep {
namespace {

// Every block succeeds, and each of its ranks says that it used so much memory.
class GreedyJob : public test::PlayedJob {
 public:
  std::vector<job::BlockOutcome> run(const std::vector<job::BlockOnSet>& blocks) override {
    const job::BlockRequest& request = blocks.at(0).request;
    job::TimelineSamples timeline;
    timeline.gradient = {2.0 * static_cast<double>(request.settings.micro_batch_size), 1};
    job::BlockOutcome outcome;
    outcome.ok = true;
    outcome.samples = {{timeline, {}, used_bytes * request.settings.micro_batch_size, {}}};
    outcome.samples[0].set_up.build_s = build_s;
    return {outcome};
  }

  std::int64_t used_bytes = 0;  // by sequence of a micro-batch
  double build_s = 0;           // which is said and not waited for
};

class Timelines : public ::testing::Test {
 protected:
  static plan::Plan planned() {
    config::Experiment e;
    e.path = "sweep.yaml";
    e.model = {"custom", 1, 64, 4, 128, 16};
    config::Change change{"micro_batch_size", "8", e.baseline};
    change.settings.micro_batch_size = 8;
    e.changes = {change};
    e.measure.memory_limit_bytes = 1 << 30;
    return plan::prepare(e, 1, {});
  }
  Recorder record(std::int64_t used_bytes, double build_s = 0) {
    GreedyJob job;
    job.used_bytes = used_bytes;
    job.build_s = build_s;
    Machine machine;
    machine.places = job.places();
    Recorder recorder(planned_result(plan_));
    std::ostringstream err;
    ProgressLine progress(err, ProgressStyle::blocks);
    EXPECT_FALSE(record_timelines(job, plan_, {}, machine, recorder, progress));
    return recorder;
  }
  plan::Plan plan_ = planned();
};

TEST_F(Timelines, ACaseWhoseWorkersUseMoreThanTheyMayIsRefused) {
  ASSERT_EQ(plan_.cases.size(), 3u);
  EXPECT_TRUE(record(100 << 20).may_run(2));
  const Recorder recorder = record(200 << 20);
  EXPECT_TRUE(recorder.may_run(0));
  EXPECT_FALSE(recorder.may_run(2));
  EXPECT_EQ(recorder.result().cases[2].status, store::CaseStatus::impossible);
  EXPECT_EQ(recorder.result().cases[2].reason,
            "used 1.56 GiB of memory per rank, more than 1 GiB (measure.memory_limit)");
}

TEST_F(Timelines, GradientsOfTheFirstStepAreSummedOverRanks) {
  const Recorder recorder = record(0);
  ASSERT_EQ(recorder.result().gradients.size(), 2u) << "the control is the baseline";
  EXPECT_EQ(recorder.result().gradients[1].case_index, 2);
  EXPECT_EQ(recorder.result().gradients[1].sharded_squares, 16);
}

// What the workers say of their set-up is what a block costs in a process that runs; a process of its own is timed from
// outside. The copies of the baseline are not run for it, and each costs what its kind does.
TEST_F(Timelines, ABlockIsExpectedToTakeWhatItsKindTakes) {
  config::Experiment e = plan_.experiment;
  e.baseline.workload = "gemm";
  e.changes.clear();
  for (const auto& [variable, value] : {std::pair("repetitions", "3"), std::pair("threads", "1")}) {
    e.changes.push_back({variable, value, e.baseline});
    config::find_variable(variable)->parse(e.changes.back().settings, value);
  }
  plan_ = plan::prepare(e, 1, {});
  ASSERT_EQ(plan_.cases.size(), 5u);
  ASSERT_EQ(plan_.cases[2].name, "baseline_alone");
  const Recorder recorder = record(0, 1000);
  for (const std::size_t shared : {0u, 1u, 3u}) EXPECT_EQ(recorder.state(shared).set_up_s, 1000) << shared;
  for (const std::size_t alone : {2u, 4u}) EXPECT_LT(recorder.state(alone).set_up_s, 100) << alone;
}

program::ProgramSet random_set(std::mt19937_64& random, store::ResultCase& row) {
  const auto pick = [&](std::initializer_list<int> of) {
    return *(of.begin() + std::uniform_int_distribution<>(0, static_cast<int>(of.size()) - 1)(random));
  };
  const config::Model model{"small", 4, 64, 4, 256, 32};
  config::Settings settings;
  program::Layout layout;
  const int tensor = pick({1, 2, 4}), pipeline = pick({1, 2, 4}), data = pick({1, 2, 3}),
            micro_batches = pick({1, 3, 6});
  settings.layout = {{program::Axis::tensor, tensor}, {program::Axis::pipeline, pipeline}};
  settings.micro_batch_size = pick({1, 2});
  settings.global_batch_size = settings.micro_batch_size * micro_batches * data;
  settings.overlap_grad_reduce = pick({0, 1}) == 1;
  settings.bucket_size_bytes = pick({1, 64}) * 1024;
  layout.size = {tensor, 1, data, pipeline};
  row.name = "baseline";
  row.ranks = layout.ranks();
  row.layout[program::Axis::tensor] = tensor;
  row.layout[program::Axis::pipeline] = pipeline;
  row.layout[program::Axis::data] = data;
  return program::lower(workloads::build_programs(model, settings, layout),
                        pick({0, static_cast<int>(program::all_fused)}));
}

TEST(TimelineRows, WaitingIsWhatItWasAndThePartsAreTheStep) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    store::Result result;
    result.cases.resize(1);
    const program::ProgramSet set = random_set(random, result.cases[0]);
    result.ranks = set.layout.ranks();
    const test::samples::SimulatedStep step(set, seed);
    ASSERT_TRUE(step.finished()) << seed;
    program::LeastTimes limits(set, std::vector<int>(static_cast<std::size_t>(result.ranks), 0),
                               {1e9, 0, false, false});
    std::vector<job::Samples> samples = step.samples();
    const bool all_ranks = seed % 2 == 0;
    for (int rank = 0; rank < result.ranks && !all_ranks; ++rank) {
      const int role = set.role_of(set.layout.coordinates(rank));
      if (set.first_rank(role) == rank) continue;
      std::get<job::TimelineSamples>(samples[static_cast<std::size_t>(rank)].task).timeline.clear();
    }
    add_timeline(result, 0, set, samples, limits);
    for (const store::ResultOperations& row : result.operations) {
      EXPECT_EQ(row.limit_s > 0, !row.group.empty() && result.ranks > 1) << row.kind;
    }

    for (const store::ResultInterval& x : result.timeline) {
      const auto& truth = step.times(x.rank)[static_cast<std::size_t>(x.operation)];
      if (std::isnan(x.waiting_s)) continue;
      ASSERT_NEAR(x.waiting_s, truth.waiting_s, 1e-8) << seed << " " << x.kind << " " << x.what;
      ASSERT_NEAR(x.bubble_s, truth.bubble_s, 1e-8) << seed << " " << x.kind << " " << x.what;
    }
    for (const store::ResultSplit& s : result.splits) {
      double waiting_s = 0, bubble_s = 0;
      for (const auto& t : step.times(s.rank)) {
        waiting_s += t.waiting_s;
        bubble_s += t.bubble_s;
      }
      EXPECT_NEAR(s.waiting_s, waiting_s, 1e-6) << seed;
      EXPECT_NEAR(s.bubble_s, bubble_s, 1e-6) << seed;
    }
    const auto all = analysis::break_down(result);
    ASSERT_EQ(all.size(), 1u);
    ASSERT_EQ(all[0].ranks.size(), all_ranks ? static_cast<std::size_t>(result.ranks) : set.roles.size());
    const store::ResultCase& row = result.cases[0];
    // The mean is of all ranks, not of those that have a timeline.
    double compute_s = 0, idle_s = 0, step_s = 0;
    for (const store::ResultSplit& s : result.splits) {
      compute_s += s.compute_s / result.ranks;
      idle_s += s.idle_s / result.ranks;
      step_s += s.step_s / result.ranks;
    }
    const analysis::Breakdown& mean = all[0].mean;
    EXPECT_NEAR(mean.parts.computation(), compute_s, 1e-9) << seed;
    EXPECT_NEAR(mean[Part::idle].value_or(0) + mean[Part::loading].value_or(0), idle_s, 1e-9) << seed;
    EXPECT_NEAR(mean.step_s, step_s, 1e-9) << seed;
    EXPECT_NEAR(mean.parts.sum(), step_s, 1e-9) << seed;
    if (all_ranks) {
      for (const Part part : all_parts) {
        double seconds = 0;
        for (const analysis::Breakdown& b : all[0].ranks) seconds += b[part].value_or(0) / result.ranks;
        EXPECT_NEAR(mean[part].value_or(0), seconds, 1e-9) << seed;
      }
      EXPECT_EQ(all[0].ranks[all[0].critical].rank, all[0].critical_rank) << seed;
    }
    for (const analysis::Breakdown& b : all[0].ranks) {
      EXPECT_NEAR(b.parts.sum(), b.step_s, 1e-9) << seed;
      EXPECT_EQ(b[Part::tensor].has_value(), row.layout[program::Axis::tensor] > 1) << seed;
      EXPECT_EQ(b[Part::data].has_value(), row.layout[program::Axis::data] > 1) << seed;
      EXPECT_EQ(b[Part::bubble].has_value(), row.layout[program::Axis::pipeline] > 1) << seed;
      EXPECT_EQ(b[Part::waiting].has_value(), row.layout[program::Axis::tensor] * row.layout[program::Axis::data] > 1)
          << seed;
      // Exposed or hidden, nothing else than communication is waited in.
      EXPECT_LE(b[Part::waiting].value_or(0), result.splits[static_cast<std::size_t>(b.rank)].waiting_s + 1e-6) << seed;
      EXPECT_LE(b[Part::bubble].value_or(0), result.splits[static_cast<std::size_t>(b.rank)].bubble_s + 1e-6) << seed;
    }
  }
}

template <std::size_t... I>
std::vector<std::string> all_kinds(std::index_sequence<I...>) {
  return {std::string(std::variant_alternative_t<I, program::Action>::name)...};
}

// What tells a row's operation apart must come back from the file whole.
TEST(TimelineRows, NamesFitTheirColumns) {
  const config::Model model{"small", 4, 64, 4, 256, 32};
  config::Settings settings;
  settings.layout = {{program::Axis::tensor, 2}, {program::Axis::pipeline, 2}};
  settings.global_batch_size = 4;
  program::Layout layout;
  layout.size = {2, 1, 2, 2};
  std::vector<store::ResultInterval> rows;
  const auto kinds = all_kinds(std::make_index_sequence<std::variant_size_v<program::Action>>());
  const auto streams = workloads::build_programs(model, settings, layout).roles[0].streams;
  for (std::size_t i = 0; i < std::max({kinds.size(), streams.size(), std::size_t{6}}); ++i) {
    store::ResultInterval row;
    row.kind = kinds[i % kinds.size()];
    row.stream = streams[i % streams.size()];
    row.phase = program::name_of(static_cast<program::Phase>(i % 6));
    rows.push_back(row);
  }
  store::Result plan;
  plan.ranks = 1;
  plan.cases.resize(1);
  plan.cases[0].name = "baseline";
  const test::TemporaryFolder folder;
  const std::string path = folder / "names.h5";
  store::ResultFile::create(path, plan, {.intervals = static_cast<std::int64_t>(rows.size()), .totals = 1}, true)
      ->add_timeline(rows);
  const store::Result got = store::read_result(path);
  ASSERT_EQ(got.timeline.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(got.timeline[i].kind, rows[i].kind);
    EXPECT_EQ(got.timeline[i].stream, rows[i].stream);
    EXPECT_EQ(got.timeline[i].phase, rows[i].phase);
  }
}

}  // namespace
}  // namespace harness::sweep
