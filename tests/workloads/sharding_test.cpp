// State that replicas divide among them, and when each has the parts that it needs.
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

// Off, everything waits for the last of them; on, each layer for its own.
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

// The product that follows a gathering in the list belongs to its layer where nothing is gathered ahead.
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
    // Ahead of a step's first layer is nothing, and one unit ahead of a micro-batch's first is the embedding.
    const std::array<int, 4> expected{0, gathers - 2, gathers - 1, gathers - 1};
    EXPECT_EQ(hidden, expected.at(static_cast<std::size_t>(ahead))) << ahead;
  }
}

// The own part of a rank is that of its place on its node: of all replicas together it would be another one.
TEST(Sharding, OfANodeIsRefusedOverOtherRanksThanThoseThatDivide) {
  auto set = build(sharded_on_nodes(1, 1, 4, 2, config::Sharding::optimizer));
  std::swap(set.groups[gpt::data_group].replicas, set.groups[gpt::across_group].replicas);
  EXPECT_THAT(texts(program::verify(set)), HasSubstr("is not that of a member of group data"));
}

}  // namespace
}  // namespace harness::workloads
