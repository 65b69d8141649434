#include "plan/survey.h"

#include "plan/plan.h"

#include <gtest/gtest.h>

namespace harness::plan {
namespace {

const config::Model model_1b3{"gpt3-1.3b", 24, 2048, 16, 50304, 2048};

TEST(Survey, CountsAndPlansARealJob) {
  PlannedCase c;
  c.settings.global_batch_size = 512;
  c.settings.layout = {{program::Axis::tensor, 8}, {program::Axis::pipeline, 2}};
  c.layout.size = {8, 1, 8, 2};
  const Survey s = survey(model_1b3, config::BackendKind::cuda, c);
  EXPECT_EQ(s.roles, 2);
  EXPECT_NEAR(s.flop.model / s.tokens_per_step / 1e9, 8.470, 5e-4);
  EXPECT_GT(s.peak_bytes, 0);
}

}  // namespace
}  // namespace harness::plan
