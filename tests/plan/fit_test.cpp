#include "plan/fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/prepare.h"
#include "small_experiment.h"
#include "support/errors.h"

namespace harness::plan {
namespace {

using ::testing::HasSubstr;

config::Experiment sweep_of_batches() {
  config::Experiment e = test::small_experiment();
  e.model = {"custom", 2, 256, 4, 1024, 256};
  test::add_change(e, "micro_batch_size", "2");
  test::add_change(e, "micro_batch_size", "8");
  test::add_change(e, "memory_cap", "50 %");
  return e;
}

double bytes_of(const Plan& plan, std::size_t i) {
  return planned_memory_bytes(plan.experiment.backend, plan.cases[i]);
}

TEST(Fit, ACaseThatNeedsMoreThanTheDeviceHoldsIsNotScheduled) {
  config::Experiment e = sweep_of_batches();
  const Plan all = prepare(e, 1, {});
  ASSERT_EQ(all.cases.size(), 5u);
  for (const PlannedCase& planned : all.cases) EXPECT_TRUE(planned.is_possible()) << "no memory is known";
  // Between micro-batches of two and of eight, and more than half of it taken by the baseline.
  e.measure.memory_limit_bytes = bytes_of(all, 2) + 1;
  ASSERT_LT(bytes_of(all, 2), bytes_of(all, 3));
  ASSERT_GT(bytes_of(all, 0), bytes_of(all, 2) / 2);
  const Plan plan = prepare(e, 1, {});
  EXPECT_TRUE(plan.cases[2].is_possible());
  EXPECT_THAT(plan.cases[3].impossible, HasSubstr("MiB of memory per rank, more than "));
  EXPECT_THAT(plan.cases[3].impossible, HasSubstr("(measure.memory_limit)"));
  EXPECT_THAT(plan.cases[4].impossible, HasSubstr("more than 50 % (memory_cap) of "));
  EXPECT_EQ(plan.schedule.size(), 4u * 3);
  EXPECT_TRUE(std::ranges::none_of(plan.schedule, [](const Slot& slot) { return slot.case_index > 2; }));
}

TEST(Fit, APredictionMayAssumeMoreMemoryAndSaysSo) {
  config::Experiment e = sweep_of_batches();
  const Plan all = prepare(e, 1, {});
  e.measure.memory_limit_bytes = bytes_of(all, 3) - 1;
  e.changes.clear();
  test::add_change(e, "micro_batch_size", "8");
  e.baseline.memory_cap = 2;
  for (config::Change& change : e.changes) change.settings.memory_cap = 2;
  const Plan plan = prepare(e, 1, {});
  EXPECT_TRUE(plan.cases[2].is_possible());
  EXPECT_THAT(plan.cases[2].notes, ::testing::ElementsAre(HasSubstr("hypothetical: it needs ")));
  EXPECT_TRUE(plan.cases[0].notes.empty());
  e.measure.memory_limit_bytes /= 4;
  EXPECT_THAT(test::error_of([&] { prepare(e, 1, {}); }), HasSubstr("more than 200 % (memory_cap) of "));
}

TEST(Fit, ABaselineThatDoesNotFitIsAnError) {
  config::Experiment e = sweep_of_batches();
  e.measure.memory_limit_bytes = 32 << 20;
  EXPECT_THAT(test::error_of([&] { prepare(e, 1, {}); }), HasSubstr("the baseline cannot run on 1 ranks: needs "));
}

// A GPU's memory is its hardware file's, and a worker needs more on it than the Program says.
TEST(Fit, OnAGpuTheWorkersOwnNeedsCount) {
  const double arena = 1 << 20;
  PlannedCase planned;
  planned.survey.roles = 1;
  planned.survey.peak_bytes = static_cast<std::int64_t>(arena);
  EXPECT_EQ(planned_memory_bytes(config::BackendKind::cuda, planned) - arena, 1.5 * (1 << 30));
  EXPECT_EQ(planned_memory_bytes(config::BackendKind::cpu, planned) - arena, 30 * (1 << 20));
}

}  // namespace
}  // namespace harness::plan
