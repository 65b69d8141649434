// Updates of the weights beside the backward pass.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "gpt_jobs.h"
#include "program/order.h"

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

TEST(OverlappedOptimizer, IsOneUpdateAfterTheBackwardPassWhereItIsOff) {
  const auto set = build(job({"m", 4, 64, 4, 256, 32}, 1, 1, 2, 2));
  const auto& step = set.roles[0].step;
  ASSERT_EQ(updates(set.roles[0]).size(), 1u);
  EXPECT_EQ(step[updates(set.roles[0]).front()].stream, compute_stream);
  for (const program::Operation& op : step) EXPECT_NE(op.stream, optimizer_stream);
  for (const char beside : program::computes_beside_another(step, set.roles[0].streams.size())) EXPECT_EQ(beside, 0);
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

TEST(OverlappedOptimizer, UpdatesTheTiedTableAfterItsExchange) {
  const auto set = with_overlapped_optimizer(1, 2, 2);
  for (std::size_t r = 0; r < set.roles.size(); ++r) {
    const program::Program& role = set.roles[r];
    const program::HappensBefore before(role.step, role.streams.size());
    program::OperationId exchange = -1;
    program::View tied;
    for (std::size_t i = 0; i < role.step.size(); ++i) {
      if (role.step[i].label.what != "tied embedding") continue;
      exchange = static_cast<program::OperationId>(i);
      tied = std::get<program::AllReduce>(role.step[i].action).data;
    }
    ASSERT_GE(exchange, 0);
    int after = 0;
    for (const program::OperationId id : updates(role)) {
      const program::View& gradient = std::get<program::AdamW>(role.step[id].action).gradient;
      const bool holds_tied =
          gradient.offset < tied.offset + tied.count && tied.offset < gradient.offset + gradient.count;
      EXPECT_EQ(before.ordered(exchange, data_stream, id), holds_tied);
      after += holds_tied ? 1 : 0;
    }
    EXPECT_EQ(after, 1);
  }
}

// They are final before the replicas' reduction of their bucket reads them, and before an update does.
TEST(OverlappedOptimizer, NoBucketIsReducedOrUpdatedBeforeTheTensorRanksSummedItsGradients) {
  for (const bool overlap : {true, false}) {
    Job j = small_job(2, 1, 2);
    j.settings.sequence_parallel = true;
    j.settings.bucket_size_bytes = 16 << 10;
    j.settings.overlap_grad_reduce = overlap;
    j.settings.overlap_optimizer = true;
    const program::Program p = build(j).roles[0];
    int sums = 0;
    std::vector<program::View> reduced;
    for (const program::Operation& op : p.step) {
      if (op.label.phase != program::Phase::gradient_sync) continue;
      const program::View& data = std::get<program::AllReduce>(op.action).data;
      if (op.stream == tensor_stream) {
        ++sums;
        for (const program::View& v : reduced) EXPECT_FALSE(program::overlap(v, data));
      } else {
        reduced.push_back(data);
      }
    }
    EXPECT_GT(sums, 4);
    EXPECT_GT(reduced.size(), 2u);
  }
}

}  // namespace
}  // namespace harness::workloads
