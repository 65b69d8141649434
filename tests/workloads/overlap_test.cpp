// Overlap in a step: gradient reductions, weight updates, and gathers of sharded weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "gpt_jobs.h"
#include "program/builder.h"
#include "program/describe.h"

namespace harness::workloads {
namespace {

using ::testing::HasSubstr;

std::string without_waits(const program::Program& p, program::Operation op) {
  op.waits.clear();
  return program::describe(p, op);
}

TEST(Gpt, OverlapIsADifferenceOfDependenciesAlone) {
  Job j = job({"m", 4, 64, 4, 256, 32}, 1, 1, 4, 2);
  j.settings.bucket_size_bytes = 100 << 10;
  const auto on = build(j);
  j.settings.overlap_grad_reduce = false;
  const auto off = build(j);
  const auto lines = [](const program::ProgramSet& set) {
    std::multiset<std::string> all;
    for (const program::Operation& op : set.roles[0].step) all.insert(without_waits(set.roles[0], op));
    return all;
  };
  EXPECT_EQ(lines(on), lines(off));
  EXPECT_NE(program::hash(on), program::hash(off));
  // On: some bucket waits for an operation before the last one of the backward pass. Off: all wait for the last one.
  const auto earliest_wait = [](const program::ProgramSet& set) {
    program::OperationId earliest = 1 << 30, last_backward = 0;
    const auto& step = set.roles[0].step;
    for (std::size_t i = 0; i < step.size(); ++i) {
      if (step[i].label.phase == program::Phase::backward) last_backward = static_cast<program::OperationId>(i);
      if (step[i].label.what == "gradient bucket" && !step[i].waits.empty())
        earliest = std::min(earliest, step[i].waits.back());
    }
    return std::pair(earliest, last_backward);
  };
  EXPECT_LT(earliest_wait(on).first, earliest_wait(on).second);
  EXPECT_EQ(earliest_wait(off).first, earliest_wait(off).second);
}

// Updates overlap with the layers' products in the backward pass of the last micro-batch.
TEST(OverlappedOptimizer, RunsBesideTheLastBackwardPass) {
  constexpr std::array<std::array<int, 3>, 5> layouts{{{1, 1, 1}, {1, 1, 2}, {1, 2, 1}, {1, 2, 2}, {2, 2, 2}}};
  for (const auto& [tp, pp, dp] : layouts) {
    for (const bool overlap_reduction : {true, false}) {
      Job j = job({"m", 4, 64, 4, 256, 32}, tp, pp, dp, 2);
      j.settings.bucket_size_bytes = 32 << 10;
      j.settings.overlap_grad_reduce = overlap_reduction;
      j.settings.overlap_optimizer = true;
      const auto set = build(j);
      const bool expected = overlap_reduction || dp == 1;  // otherwise all updates follow the backward pass
      for (const program::Program& role : set.roles) {
        const auto beside = program::computes_beside_another(role.step, role.streams.size());
        int products = 0, updates = 0, updates_beside = 0;
        for (std::size_t i = 0; i < role.step.size(); ++i) {
          const program::Operation& op = role.step[i];
          updates += std::holds_alternative<program::AdamW>(op.action) ? 1 : 0;
          if (beside[i] == 0) continue;
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
        EXPECT_LT(updates_beside, updates);  // the last bucket has nothing beside it
      }
    }
  }
}

// Off: everything waits for the last gather. On: each layer waits for its own.
TEST(Sharding, OverlappedGatheringIsADifferenceOfWaitsAlone) {
  Job j = sharded(2, 2, 2);
  const program::ProgramSet before = build(j);
  j.settings.overlap_param_gather = true;
  const program::ProgramSet behind = build(j);
  for (std::size_t r = 0; r < before.roles.size(); ++r) {
    const program::Program &off = before.roles[r], &on = behind.roles[r];
    ASSERT_EQ(off.step.size(), on.step.size());
    const program::HappensBefore order_off(off.step, off.streams.size()), order_on(on.step, on.streams.size());
    int waited_for = 0, not_waited_for = 0;
    program::OperationId first_product = -1;
    for (std::size_t i = 0; i < off.step.size(); ++i) {
      EXPECT_EQ(without_waits(off, off.step[i]), without_waits(on, on.step[i]));
      const bool product = std::holds_alternative<program::Matmul>(off.step[i].action);
      if (product && first_product < 0) first_product = static_cast<program::OperationId>(i);
    }
    for (std::size_t i = 0; i < off.step.size(); ++i) {
      if (!std::holds_alternative<program::AllGather>(off.step[i].action) || off.step[i].stream != gather_stream)
        continue;
      const auto gather = static_cast<program::OperationId>(i);
      EXPECT_TRUE(order_off.ordered(gather, gather_stream, first_product));
      ++(order_on.ordered(gather, gather_stream, first_product) ? waited_for : not_waited_for);
    }
    EXPECT_GE(waited_for, 1);
    EXPECT_GE(not_waited_for, 2);
  }
}

// Without prefetching, the first product after a gather in the list is one of its layer.
TEST(Sharding, LayersAreGatheredAheadOfTheirUse) {
  for (const int ahead : {0, 1, 3}) {
    Job j = sharded(1, 1, 2, 2, config::Sharding::parameters);
    j.settings.prefetch_layers = ahead;
    const program::Program p = build(j).roles[0];
    const program::HappensBefore before(p.step, p.streams.size());
    int gathers = 0, hidden = 0;
    for (std::size_t i = 0; i < p.step.size(); ++i) {
      if (p.step[i].stream != gather_stream || p.step[i].label.layer < 0) continue;
      const auto next = std::find_if(p.step.begin() + static_cast<std::ptrdiff_t>(i), p.step.end(),
                                     [](const auto& op) { return std::holds_alternative<program::Matmul>(op.action); });
      ASSERT_NE(next, p.step.end());
      ++gathers;
      hidden += before.ordered(static_cast<program::OperationId>(i), gather_stream,
                               static_cast<program::OperationId>(next - p.step.begin()))
                    ? 0
                    : 1;
    }
    EXPECT_EQ(gathers, 2 * (2 * 4 - 1));
    // Nothing runs ahead of a step's first layer, and one unit ahead of a micro-batch's first layer is the embedding.
    const std::array<int, 4> expected{0, gathers - 2, gathers - 1, gathers - 1};
    EXPECT_EQ(hidden, expected.at(static_cast<std::size_t>(ahead))) << ahead;
  }
}

// A rank's own part follows from its place on its node. Its place among all replicas would give another part.
TEST(Sharding, OfANodeIsRefusedOverOtherRanksThanThoseThatDivide) {
  auto set = build(sharded_on_nodes(1, 1, 4, 2, config::Sharding::optimizer));
  std::swap(set.groups[gpt::data_group].replicas, set.groups[gpt::across_group].replicas);
  EXPECT_THAT(texts(program::verify(set)), HasSubstr("is not that of a member of group data"));
}

}  // namespace
}  // namespace harness::workloads
