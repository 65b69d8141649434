// A step whose passes are folded needs the memory and sends the messages of the same step with all operations.
#include <gtest/gtest.h>

#include "plan/plan.h"
#include "plan/survey.h"
#include "program/lower.h"
#include "support/drawn_steps.h"
#include "workloads/gpt/gpt.h"

namespace harness::plan {
namespace {

void expect_equal(const Survey& folded, const Survey& whole) {
  EXPECT_EQ(folded.roles, whole.roles);
  EXPECT_EQ(folded.peak_bytes, whole.peak_bytes);
  EXPECT_EQ(folded.peak_role, whole.peak_role);
  EXPECT_NEAR(folded.flop.model, whole.flop.model, 1e-12 * whole.flop.model);
  EXPECT_NEAR(folded.flop.noncausal, whole.flop.noncausal, 1e-12 * whole.flop.noncausal);
  EXPECT_NEAR(folded.hardware_flop, whole.hardware_flop, 1e-12 * whole.hardware_flop);
  ASSERT_EQ(folded.counts.size(), whole.counts.size());
  for (std::size_t role = 0; role < whole.counts.size(); ++role) {
    const program::Count &f = folded.counts[role], &w = whole.counts[role];
    EXPECT_EQ(f.operations, w.operations);
    EXPECT_EQ(f.flop_kinds, w.flop_kinds);
    ASSERT_EQ(f.traffic.size(), w.traffic.size());
    for (const auto& [kind, traffic] : w.traffic) {
      ASSERT_TRUE(f.traffic.contains(kind)) << kind.first << " " << kind.second;
      const program::Traffic& of_folded = f.traffic.at(kind);
      EXPECT_EQ(of_folded.messages, traffic.messages) << kind.first << " " << kind.second;
      EXPECT_EQ(of_folded.bytes, traffic.bytes) << kind.first << " " << kind.second;
      EXPECT_NEAR(of_folded.sent_bytes, traffic.sent_bytes, 1e-12 * traffic.sent_bytes);
    }
  }
}

TEST(FoldedSurvey, IsThatOfTheWholeStep) {
  test::StepDraw draw(4);
  for (int i = 0; i < 200; ++i) {
    const test::DrawnStep step = draw.next();
    SCOPED_TRACE(step.text());
    program::FoldedStep folded = gpt::folded(step.model, step.settings, step.layout);
    const program::FusedSet fused = i % 2 == 0 ? program::all_fused : 0;
    folded.sample = program::lower(std::move(folded.sample), fused);
    const auto whole = [&](int role) {
      return program::lower(gpt::program_of_stage(step.model, step.settings, step.layout, role), fused);
    };
    expect_equal(survey_of(folded, whole),
                 survey_of(program::lower(gpt::programs(step.model, step.settings, step.layout), fused)));
  }
}

// Which steps are folded is the workload's affair; a survey tells nobody.
TEST(FoldedSurvey, IsTakenOfLongStepsWhereTheBackendPredicts) {
  PlannedCase c;
  c.settings.global_batch_size = 64;
  c.settings.layout = {{program::Axis::pipeline, 2}};
  c.layout.size = {1, 1, 1, 2};
  const config::Model model{"m", 24, 1024, 16, 51200, 1024};
  ASSERT_TRUE(workloads::gpt_workload().folded(model, c.settings, c.layout));
  Surveyor predicting(model, config::BackendKind::sim);
  const Survey folded = predicting.survey(c);
  EXPECT_TRUE(predicting.take_step().folded);
  EXPECT_FALSE(predicting.take_step().folded);
  Surveyor measuring(model, config::BackendKind::cpu);
  const Survey whole = measuring.survey(c);
  EXPECT_TRUE(measuring.take_step().whole);
  EXPECT_NEAR(folded.flop.model, whole.flop.model, 1e-12 * whole.flop.model);
  EXPECT_EQ(folded.tokens_per_step, whole.tokens_per_step);
}

}  // namespace
}  // namespace harness::plan
