// Updates of the weights beside the backward pass.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "gpt_jobs.h"
#include "program/builder.h"

namespace harness::workloads {
namespace {

program::ProgramSet with_overlapped_optimizer(int tp, int pp, int dp, bool overlap_grad_reduce = true) {
  Job j = job({"m", 4, 64, 4, 256, 32}, tp, pp, dp, 2);
  j.settings.bucket_size_bytes = 32 << 10;
  j.settings.overlap_grad_reduce = overlap_grad_reduce;
  j.settings.overlap_optimizer = true;
  return build(j);
}

const std::array<std::array<int, 3>, 5> overlapped_layouts{{{1, 1, 1}, {1, 1, 2}, {1, 2, 1}, {1, 2, 2}, {2, 2, 2}}};

std::vector<program::OperationId> updates(const program::Program& p) {
  std::vector<program::OperationId> found;
  for (std::size_t i = 0; i < p.step.size(); ++i) {
    if (std::holds_alternative<program::AdamW>(p.step[i].action)) found.push_back(static_cast<program::OperationId>(i));
  }
  return found;
}

// The updates run beside products of the layers, in the backward pass of the last micro-batch.
TEST(OverlappedOptimizer, RunsBesideTheLastBackwardPass) {
  for (const auto& [tp, pp, dp] : overlapped_layouts) {
    for (const bool overlap_reduction : {true, false}) {
      const auto set = with_overlapped_optimizer(tp, pp, dp, overlap_reduction);
      const bool expected = overlap_reduction || dp == 1;  // else all updates follow it
      for (const program::Program& role : set.roles) {
        const auto beside = program::computes_beside_another(role.step, role.streams.size());
        int products = 0, updates_beside = 0;
        for (std::size_t i = 0; i < role.step.size(); ++i) {
          if (beside[i] == 0) continue;
          const program::Operation& op = role.step[i];
          if (op.stream == optimizer_stream) {
            ++updates_beside;
            continue;
          }
          EXPECT_EQ(op.label.phase, program::Phase::backward) << program::title(op);
          EXPECT_EQ(op.label.micro_batch, 1) << program::title(op);
          products += std::holds_alternative<program::Matmul>(op.action) ? 1 : 0;
        }
        EXPECT_EQ(products > 0, expected);
        EXPECT_EQ(updates_beside > 0, expected);
        EXPECT_LT(updates_beside, static_cast<int>(updates(role).size()));  // the last bucket has nothing beside it
      }
    }
  }
}

}  // namespace
}  // namespace harness::workloads
