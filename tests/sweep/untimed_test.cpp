#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <sstream>

#include "analysis/breakdown.h"
#include "plan/plan.h"
#include "program/expand.h"
#include "program/program.h"
#include "sim/critical_path.h"
#include "store/result_file.h"
#include "support/files.h"
#include "support/played_job.h"
#include "sweep/recorder.h"
#include "sweep/rounds.h"
#include "workloads/workload.h"

namespace harness::sweep {

namespace {

// Each of the ranks of a block reports this memory use. The blocks of one case fail in the given ways, one after
// another, before they succeed. A user may stop the job after the first block.
class GreedyJob : public test::PlayedJob {
 public:
  explicit GreedyJob(std::string failing = "", std::vector<std::string> ways = {})
      : failing_(std::move(failing)), ways_(std::move(ways)) {}
  job::BlockOutcome run(const job::BlockOnSet& block) override {
    const job::BlockRequest& request = block.request;
    job::BlockOutcome outcome;
    if (request.case_name == failing_ && tries < ways_.size()) {
      outcome.reason = outcome.signature = ways_[tries++];
      return outcome;
    }
    sets.emplace_back(request.case_name, block.set.number, block.last);
    profiled = std::get<job::RecordTimeline>(request.task).steps;
    job::TimelineSamples timeline;
    timeline.step_s = step_s;
    timeline.gradient = {2.0 * static_cast<double>(request.settings.micro_batch_size), 1};
    outcome.ok = true;
    outcome.samples = {{timeline, {}, used_bytes * request.settings.micro_batch_size, {}}};
    return outcome;
  }
  int stop_requests() const override { return stops && !sets.empty() ? 1 : 0; }

  std::int64_t used_bytes = 0;  // per sequence of a micro-batch
  double step_s = 0;
  bool stops = false;
  int profiled = 0;                                      // steps of the last block
  std::size_t tries = 0;                                 // that failed
  std::vector<std::tuple<std::string, int, bool>> sets;  // by block: its case, its set, whether it is the last

 private:
  std::string failing_;
  std::vector<std::string> ways_;
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
  Recorder record(std::int64_t used_bytes) {
    GreedyJob job;
    job.used_bytes = used_bytes;
    return record(job);
  }
  Recorder record(GreedyJob& job) {
    Machine machine;
    machine.places = job.places();
    Recorder recorder(planned_result(plan_));
    std::ostringstream err;
    ProgressLine progress(err, ProgressStyle::blocks);
    EXPECT_EQ(record_timelines(job, plan_, {}, machine, recorder, progress), job.stops);
    sets_ = job.sets;
    profiled_ = job.profiled;
    return recorder;
  }
  plan::Plan plan_ = planned();
  std::vector<std::tuple<std::string, int, bool>> sets_;
  int profiled_ = 0;
};

TEST_F(Timelines, ACaseWhoseWorkersUseMoreThanTheyMayIsRefused) {
  ASSERT_EQ(plan_.cases.size(), 3u);
  EXPECT_TRUE(record(100 << 20).may_run(2));
  EXPECT_EQ(profiled_, 5);
  const Recorder recorder = record(200 << 20);
  EXPECT_TRUE(recorder.may_run(0));
  EXPECT_FALSE(recorder.may_run(2));
  EXPECT_EQ(recorder.result().cases[2].status, store::CaseStatus::impossible);
  EXPECT_EQ(recorder.result().cases[2].reason,
            "used 1.56 GiB of memory per rank, more than 1 GiB (measure.memory_limit)");
}

TEST_F(Timelines, ACaseThatFailsEachTimeIsDropped) {
  GreedyJob alike(plan_.cases[2].name, {"killed", "killed"}), other(plan_.cases[2].name, {"killed", "hung", "burnt"});
  EXPECT_FALSE(record(alike).may_run(2));
  const Recorder recorder = record(other);
  EXPECT_EQ(other.tries, 3u);
  EXPECT_TRUE(recorder.may_run(0));
  EXPECT_FALSE(recorder.may_run(2));
  EXPECT_EQ(recorder.result().cases[2].reason, "failed at each try and was dropped, at last: burnt");
  GreedyJob baseline("baseline", {"killed", "hung", "burnt"});
  EXPECT_THROW(record(baseline), Error);
}

TEST_F(Timelines, AFailureOfTheBaselineIsNoneOfItsCopy) {
  GreedyJob once("baseline", {"killed"});
  Recorder recorder = record(once);
  job::BlockOutcome killed;
  killed.signature = "killed";
  recorder.note_failure(1, killed);
  EXPECT_TRUE(recorder.may_run(1));
}

TEST_F(Timelines, AStopLeavesTheOtherCasesTheBaselinesTime) {
  GreedyJob job;
  job.step_s = 2;
  job.stops = true;
  const Recorder recorder = record(job);
  EXPECT_EQ(job.sets.size(), 1u);
  for (const std::size_t i : {0u, 1u, 2u}) EXPECT_EQ(recorder.state(i).step_s, 2) << i;
}

TEST_F(Timelines, GradientsOfTheFirstStepAreSummedOverRanks) {
  const Recorder recorder = record(0);
  ASSERT_EQ(recorder.result().gradients.size(), 2u) << "the control is the baseline";
  EXPECT_EQ(recorder.result().gradients[1].case_index, 2);
  EXPECT_EQ(recorder.result().gradients[1].sharded_squares, 16);
}

// Cases of one setting share a worker set. The copy of the baseline has no timeline.
TEST_F(Timelines, OfAnOperationThoseOfASettingRunInOneWorkerSet) {
  config::Experiment e = plan_.experiment;
  e.baseline.workload = "gemm";
  e.changes.clear();
  for (const auto& [variable, value] : {std::pair("gemm", "{m: 8}"), std::pair("repetitions", "3")}) {
    e.changes.push_back({variable, "", e.baseline});
    config::find_variable(variable)->parse(e.changes.back().settings, value);
    e.changes.back().value = config::find_variable(variable)->print(e.changes.back().settings);
  }
  plan_ = plan::prepare(e, 1, {});
  ASSERT_EQ(plan_.cases.size(), 6u);
  const Recorder recorder = record(0);
  EXPECT_EQ(profiled_, 1) << "a step repeats the operation";
  const std::string size = plan_.cases[2].name;
  EXPECT_THAT(sets_, ::testing::ElementsAre(std::tuple("baseline", 0, false), std::tuple(size, 0, true),
                                            std::tuple("repetitions=3", 1, false),
                                            std::tuple("repetitions=3 at " + size, 1, true)));
  // The start-up time of the processes is divided among the cases.
  EXPECT_EQ(recorder.state(0).set_up_s, recorder.state(2).set_up_s);
  EXPECT_EQ(recorder.state(1).set_up_s, recorder.state(0).set_up_s);
}

// A worker returns the beginning of a log that is longer than its limit.
struct LoggingJob : test::PlayedJob {
  std::size_t bytes = 0;
  job::BlockOutcome run(const job::BlockOnSet& /*block*/) override {
    job::BlockOutcome outcome;
    outcome.ok = true;
    outcome.samples = {{job::ObserveSamples{std::string(bytes, ' ')}, {}, 0, {}}};
    return outcome;
  }
};

TEST_F(Timelines, ALogOfNcclThatIsCutIsWarnedOf) {
  plan_.experiment.backend = config::BackendKind::cuda;
  plan_.cases.front().layout.size = {1, 1, 2, 1};
  const auto warnings = [&](std::size_t bytes) {
    LoggingJob job;
    job.bytes = bytes;
    Recorder recorder(planned_result(planned()));
    const std::size_t before = recorder.result().warnings.size();
    std::ostringstream err;
    ProgressLine progress(err, ProgressStyle::blocks);
    EXPECT_FALSE(observe(job, plan_, {}, recorder, progress));
    return recorder.result().warnings.size() - before;
  };
  EXPECT_EQ(warnings(job::ObserveSamples::most_bytes - 1), 0u);
  EXPECT_EQ(warnings(job::ObserveSamples::most_bytes), 1u);
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
  row.layout = layout;
  return program::lower(workloads::build_programs(model, settings, layout),
                        pick({0, static_cast<int>(program::all_fused)}));
}

// One step of every rank in virtual time, with random durations of all operations, as workers report it.
struct RandomStep {
  RandomStep(const program::ProgramSet& set, std::uint64_t seed) {
    const program::ProgramSet by_rank = program::expand(set);
    const sim::RankClasses classes(by_rank);
    std::mt19937_64 random(seed);
    const sim::SimulatedStep step = sim::simulate(classes, [&](int, program::OperationId) {
      return sim::Cost{.alone = 1 + static_cast<sim::Ticks>(random() % sim::ticks_of(1e-3))};
    });
    for (int rank = 0; rank < set.layout.ranks(); ++rank) {
      const int own = classes.class_of(rank);
      const program::Program& program = classes.program(own);
      job::TimelineSamples s;
      s.timeline = sim::intervals_of(step, classes, {}, own);
      for (const program::Interval& x : s.timeline) s.step_s = std::max(s.step_s, x.end_s);
      s.communication_s = program::communication_durations(program, s.timeline);
      const auto communicates = [&](program::OperationId id) {
        return program::is_communication(program.step[static_cast<std::size_t>(id)].action);
      };
      s.split = program::split_step(s.timeline, communicates, s.step_s);
      samples.push_back({std::move(s), {}, 0, {}});
      std::vector<double>& waits = waits_s.emplace_back();
      for (const sim::OperationTimes& times : step.times[static_cast<std::size_t>(own)])
        waits.push_back(sim::seconds_of(times.start - times.ready));
    }
  }
  std::vector<job::Samples> samples;
  std::vector<std::vector<double>> waits_s;  // true wait for the last member, by rank and operation
};

TEST(TimelineRows, CountTheKeysOfAllRanksThatShareASequence) {
  const config::Model model{"small", 2, 64, 4, 256, 32};
  config::Settings settings;
  settings.layout[program::Axis::context] = 2;
  const program::ProgramSet set = workloads::build_programs(model, settings, {{program::Axis::data, 2}});
  std::vector<job::Samples> samples(2);
  for (job::Samples& s : samples) s.task = job::TimelineSamples{};
  program::LeastTimes limits(set, {0, 0}, {1e9, 0, false, false});
  store::Result of_rank, of_all;
  add_timeline(of_rank, 0, set, samples, limits);
  add_timeline(of_all, 0, set, samples, limits, 2);
  ASSERT_EQ(of_rank.operations.size(), of_all.operations.size());
  for (std::size_t i = 0; i < of_all.operations.size(); ++i) {
    const store::ResultOperations& row = of_all.operations[i];
    EXPECT_EQ(row.model_flop, (row.kind.starts_with("attention") ? 2 : 1) * of_rank.operations[i].model_flop)
        << row.kind;
  }
}

TEST(TimelineRows, WaitingIsWhatItWasAndThePartsAreTheStep) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    store::Result result;
    result.cases.resize(1);
    const program::ProgramSet set = random_set(random, result.cases[0]);
    result.ranks = set.layout.ranks();
    RandomStep step(set, seed);
    program::LeastTimes limits(set, std::vector<int>(static_cast<std::size_t>(result.ranks), 0),
                               {1e9, 0, false, false});
    const bool all_ranks = seed % 2 == 0;
    for (int rank = 0; rank < result.ranks && !all_ranks; ++rank) {
      const int role = set.role_of(set.layout.coordinates(rank));
      if (set.first_rank(role) == rank) continue;
      std::get<job::TimelineSamples>(step.samples[static_cast<std::size_t>(rank)].task).timeline.clear();
    }
    add_timeline(result, 0, set, step.samples, limits);
    for (const store::ResultOperations& row : result.operations) {
      EXPECT_EQ(row.limit_s > 0, !row.group.empty() && result.ranks > 1) << row.kind;
    }

    const auto truth = [&](int rank) -> const std::vector<double>& {
      return step.waits_s[static_cast<std::size_t>(rank)];
    };
    for (const store::ResultInterval& x : result.timeline) {
      if (std::isnan(x.waiting_s)) continue;
      ASSERT_NEAR(x.waiting_s + x.bubble_s, truth(x.rank)[static_cast<std::size_t>(x.operation)], 1e-8)
          << seed << " " << x.kind << " " << x.what;
    }
    for (const store::ResultSplit& s : result.splits) {
      const double waits_s = std::accumulate(truth(s.rank).begin(), truth(s.rank).end(), 0.0);
      EXPECT_NEAR(s.waiting_s + s.bubble_s, waits_s, 1e-6) << seed;
    }
    const auto all = analysis::break_down(result);
    ASSERT_EQ(all.size(), 1u);
    ASSERT_EQ(all[0].ranks.size(), all_ranks ? static_cast<std::size_t>(result.ranks) : set.roles.size());
    const store::ResultCase& row = result.cases[0];
    // The mean is over all ranks, not only those with a timeline.
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
    }
    for (const analysis::Breakdown& b : all[0].ranks) {
      EXPECT_NEAR(b.parts.sum(), b.step_s, 1e-9) << seed;
      EXPECT_EQ(b[Part::tensor].has_value(), row.layout[program::Axis::tensor] > 1) << seed;
      EXPECT_EQ(b[Part::data].has_value(), row.layout[program::Axis::data] > 1) << seed;
      EXPECT_EQ(b[Part::bubble].has_value(), row.layout[program::Axis::pipeline] > 1) << seed;
      EXPECT_EQ(b[Part::waiting].has_value(), row.layout[program::Axis::tensor] * row.layout[program::Axis::data] > 1)
          << seed;
      // Exposed or hidden, waiting occurs only in communication.
      EXPECT_LE(b[Part::waiting].value_or(0), result.splits[static_cast<std::size_t>(b.rank)].waiting_s + 1e-6) << seed;
      EXPECT_LE(b[Part::bubble].value_or(0), result.splits[static_cast<std::size_t>(b.rank)].bubble_s + 1e-6) << seed;
    }
  }
}

template <std::size_t... I>
std::vector<std::string> all_kinds(std::index_sequence<I...>) {
  return {std::string(std::variant_alternative_t<I, program::Action>::name)...};
}

// Columns that identify a row's operation must survive the file untruncated.
TEST(TimelineRows, NamesFitTheirColumns) {
  const config::Model model{"small", 4, 64, 4, 256, 32};
  config::Settings settings;
  settings.layout = {{program::Axis::tensor, 2}, {program::Axis::pipeline, 2}};
  settings.global_batch_size = 4;
  program::Layout layout;
  layout.size = {2, 1, 2, 2};
  const auto kinds = all_kinds(std::make_index_sequence<std::variant_size_v<program::Action>>());
  const auto streams = workloads::build_programs(model, settings, layout).roles[0].streams;
  store::Result written;
  written.ranks = 1;
  written.cases.emplace_back().name = "baseline";
  for (std::size_t i = 0; i < std::max({kinds.size(), streams.size(), std::size_t{6}}); ++i) {
    store::ResultInterval& row = written.timeline.emplace_back();
    row.kind = kinds[i % kinds.size()];
    row.stream = streams[i % streams.size()];
    row.phase = program::name_of(static_cast<program::Phase>(i % 6));
  }
  const test::TemporaryFolder folder;
  const std::string path = folder / "names.h5";
  store::write_result(path, written);
  const auto texts = [](const store::ResultInterval& row) { return std::tie(row.kind, row.stream, row.phase); };
  const store::Result read = store::read_result(path);
  ASSERT_EQ(read.timeline.size(), written.timeline.size());
  for (std::size_t i = 0; i < read.timeline.size(); ++i) EXPECT_EQ(texts(read.timeline[i]), texts(written.timeline[i]));
}

}  // namespace

}  // namespace harness::sweep
