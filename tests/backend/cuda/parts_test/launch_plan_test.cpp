#include "backend/cuda/launch_plan.h"

#include <gtest/gtest.h>

#include "backend/backend.h"
#include "backend/cuda/kernels/kernels.h"
#include "program/lower.h"
#include "workloads/workload.h"

namespace harness::cuda {
namespace {

using program::Operation;
using program::View;

constexpr int multiprocessors = 132;

// Buffers 0 to 9 have the gradients of norms 0 to 9, eight elements each of gamma and beta; 10 is anything else.
View gamma_of(int norm) {
  return {norm, 0, 8};
}
View beta_of(int norm) {
  return {norm, 8, 8};
}
Operation norm(int which, program::StreamId stream = 0, std::vector<program::OperationId> waits = {}) {
  program::LayerNormBackward op;
  op.dgamma = gamma_of(which);
  op.dbeta = beta_of(which);
  return {op, stream, std::move(waits), -1, {}};
}
Operation rms_norm(int which) {
  program::RmsNormBackward op;
  op.dgamma = gamma_of(which);
  op.dbias = beta_of(which);
  return {op, 0, {}, -1, {}};
}
Operation uses(const View& view, program::StreamId stream = 0, std::vector<program::OperationId> waits = {}) {
  return {program::Convert{view, {10, 0, 8}}, stream, std::move(waits), -1, {}};
}

std::vector<bool> later(const std::vector<Operation>& list) {
  std::vector<bool> flags;
  for (const LaunchPlan& plan : plan_launches(list, 2, multiprocessors, false)) flags.push_back(plan.sums_later);
  return flags;
}

using Flags = std::vector<bool>;

TEST(LaunchPlan, ASecondStageWaitsForTheNextNormIfNobodyNeedsItBefore) {
  EXPECT_EQ(later({norm(0), norm(1), uses(gamma_of(0)), uses(beta_of(0))}), (Flags{true, false, false, false}));
  EXPECT_EQ(later({norm(0), uses(gamma_of(0)), norm(1), uses(beta_of(0))}), (Flags{false, false, false, false}));
  EXPECT_EQ(later({norm(0), uses(beta_of(0)), norm(1), uses(gamma_of(0))}), (Flags{false, false, false, false}));
  // Not of these norms.
  EXPECT_EQ(later({norm(0), uses(gamma_of(2)), norm(1), uses(gamma_of(0)), uses(beta_of(0))}),
            (Flags{true, false, false, false, false}));
}

TEST(LaunchPlan, NormsWithAMeanAndWithoutOneShareASecondStage) {
  EXPECT_EQ(later({rms_norm(0), norm(1), uses(gamma_of(0)), uses(beta_of(0))}), (Flags{true, false, false, false}));
  EXPECT_EQ(later({norm(0), rms_norm(1), uses(gamma_of(0)), uses(beta_of(0))}), (Flags{true, false, false, false}));
  EXPECT_EQ(later({rms_norm(0), uses(beta_of(0)), rms_norm(1), uses(gamma_of(0))}),
            (Flags{false, false, false, false}));
}

TEST(LaunchPlan, WhatIsNeededByNobodyWaitsForNobody) {
  // Its memory may be another buffer's by then.
  EXPECT_EQ(later({norm(0), norm(1)}), (Flags{false, false}));
  EXPECT_EQ(later({norm(0), norm(1), uses(gamma_of(0))}), (Flags{false, false, false}));
}

TEST(LaunchPlan, TheSameGradientsAreNeverCompletedTwiceInOneLaunch) {
  EXPECT_EQ(later({norm(0), norm(0), uses(gamma_of(0)), uses(beta_of(0))}), (Flags{false, false, false, false}));
}

TEST(LaunchPlan, AnotherStreamMustComeAfterTheNormThatCompletes) {
  const auto read_after = [&](program::OperationId waits_for) -> bool {
    return later({norm(0), norm(1), uses(gamma_of(0), 1, {waits_for}), uses(beta_of(0), 1)}).front();
  };
  EXPECT_TRUE(read_after(1));
  EXPECT_FALSE(read_after(0));
  // Norms of different streams have nothing to do with each other.
  EXPECT_EQ(later({norm(0), norm(1, 1), uses(gamma_of(0)), uses(beta_of(0))}), (Flags{false, false, false, false}));
}

TEST(LaunchPlan, AtMostSoManyShareASecondStage) {
  std::vector<Operation> list;
  Flags wanted;
  for (int i = 0; i < 2 * most_joined_sums; ++i) {
    list.push_back(norm(i));
    wanted.push_back(i % most_joined_sums != most_joined_sums - 1);
  }
  for (int i = 0; i < 2 * most_joined_sums; ++i) {
    list.push_back(uses(gamma_of(i)));
    list.push_back(uses(beta_of(i)));
    wanted.insert(wanted.end(), 2, false);
  }
  wanted[2 * most_joined_sums - 1] = false;
  EXPECT_EQ(later(list), wanted);
}

// Second stages of the step of a model with 4 layers, so 9 norms, and two micro-batches.
int second_stages(const config::Settings& settings, const program::Layout& layout,
                  config::NormKind kind = config::NormKind::layer_norm) {
  config::Model model{"test", 4, 64, 4, 128, 32};
  model.norm = kind;
  const program::Program program = program::lower(workloads::build_programs(model, settings, layout).roles.front(),
                                                  config::traits_of(config::BackendKind::cuda).fused);
  const auto plan = plan_launches(program.step, program.streams.size(), multiprocessors, false);
  int norms = 0, waiting = 0;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    norms += std::holds_alternative<program::LayerNormBackward>(program.step[i].action) ? 1 : 0;
    norms += std::holds_alternative<program::RmsNormBackward>(program.step[i].action) ? 1 : 0;
    waiting += plan[i].sums_later ? 1 : 0;
  }
  EXPECT_EQ(norms, 2 * 9);
  return norms - waiting;
}

TEST(LaunchPlan, AGptStepHasAQuarterOfItsSecondStagesUnlessBucketsNeedThemSooner) {
  config::Settings settings;
  settings.global_batch_size = 2;
  settings.micro_batch_size = 1;
  settings.bucket_size_bytes = 1 << 10;  // a bucket per layer
  program::Layout replicas;
  replicas.size = {1, 1, 2, 1};
  settings.overlap_grad_reduce = false;
  EXPECT_EQ(second_stages(settings, {}), 5);
  EXPECT_EQ(second_stages(settings, {}, config::NormKind::rms_norm), 5);
  settings.global_batch_size = 4;
  EXPECT_EQ(second_stages(settings, replicas), 5);
  // Then those of the last micro-batch wait for a norm of the same layer at most.
  settings.overlap_grad_reduce = true;
  EXPECT_GT(second_stages(settings, replicas), 5);
  EXPECT_LT(second_stages(settings, replicas), 2 * 9);
}

TEST(LaunchPlan, ProgrammaticBehindAComputationOfTheSameStreamWithoutAWaitBetween) {
  const Operation collective{program::AllReduce{.data = {10, 0, 8}}, 1, {}, -1, {}};
  const std::vector<Operation> list{uses(gamma_of(0)),    uses(gamma_of(1)),         uses(gamma_of(2), 1, {0}),
                                    uses(gamma_of(3), 1), uses(gamma_of(4), 0, {3}), uses(gamma_of(5)),
                                    collective,           uses(gamma_of(6), 1)};
  const Flags wanted{false, true, false, true, false, true, false, false};
  Flags got, off;
  for (const LaunchPlan& plan : plan_launches(list, 2, multiprocessors, true)) got.push_back(plan.programmatic);
  for (const LaunchPlan& plan : plan_launches(list, 2, multiprocessors, false)) off.push_back(plan.programmatic);
  EXPECT_EQ(got, wanted);
  EXPECT_EQ(off, Flags(list.size(), false));
}

}  // namespace
}  // namespace harness::cuda
