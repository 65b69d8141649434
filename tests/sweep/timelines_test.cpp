// What the untimed workers that record timelines find out about their cases.
#include "sweep/timelines.h"

#include <gtest/gtest.h>

#include <sstream>

#include "plan/prepare.h"
#include "support/played_job.h"
#include "sweep/planned_result.h"

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
    ProgressLine progress(err, false);
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

}  // namespace
}  // namespace harness::sweep
