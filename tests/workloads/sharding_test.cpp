// State that replicas divide among them, and when each has the parts that it needs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "gpt_jobs.h"
#include "program/describe.h"
#include "program/order.h"

namespace harness::workloads {
namespace {

using ::testing::HasSubstr;

TEST(Sharding, EveryParameterIsUpdatedOnceWhereItsReplicaHoldsIt) {
  for (const config::Sharding sharding : {config::Sharding::none, config::Sharding::optimizer}) {
    for (const auto& [tp, pp, dp] : {std::array{1, 1, 1}, {1, 1, 2}, {1, 2, 4}, {2, 2, 2}}) {
      for (const unsigned levers : {0U, 1U, 2U, 3U}) {
        Job j = sharded(tp, pp, dp, 2, sharding);
        const bool beside = (levers & 1U) != 0;
        j.settings.overlap_optimizer = beside;
        j.settings.overlap_grad_reduce = (levers & 2U) != 0;
        const std::int64_t parts = gpt::shards_of(j.settings, j.layout);
        const auto set = build(j);
        for (int stage = 0; stage < pp; ++stage) {
          std::map<std::int64_t, std::int64_t> moments;
          for (const program::Operation& op : set.roles[stage].step) {
            const auto* update = std::get_if<program::AdamW>(&op.action);
            if (update == nullptr) continue;
            EXPECT_EQ(op.stream, beside ? optimizer_stream : compute_stream);
            EXPECT_EQ(update->gradient.parts, parts);
            EXPECT_EQ(update->weights.parts, parts);
            EXPECT_EQ(update->gradient.offset, parts * update->moment1.offset);
            EXPECT_EQ(update->weights.offset, update->gradient.offset);
            EXPECT_EQ(update->master.offset, update->moment2.offset);
            EXPECT_TRUE(moments.emplace(update->moment1.offset, update->moment1.count).second);
          }
          EXPECT_TRUE(!beside || moments.size() >= 4u);
          std::int64_t covered = 0;
          for (const auto& [first, count] : moments) {
            EXPECT_EQ(first, covered);
            covered += count;
          }
          EXPECT_EQ(covered, elements_of(j, stage).flat / parts);
        }
      }
    }
  }
}

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

// Layers take turns in their places: who reads a place finds the weights of its own layer there. With tensor
// parallelism a layer's last bias is added by the norm of the next.
TEST(Sharding, EachLayerReadsItsOwnWeights) {
  for (const int tp : {1, 2}) {
    for (const int ahead : {0, 1, 2}) {
      for (const auto recompute : {config::Recompute::none, config::Recompute::full}) {
        Job j = sharded(tp, 1, 2, 2, config::Sharding::parameters);
        j.settings.prefetch_layers = ahead;
        j.settings.recompute = recompute;
        const program::Program p = build(j).roles[0];
        std::map<program::BufferId, int> layer_in;  // of a place, in the order of the list
        int reads = 0;
        for (const program::Operation& op : p.step) {
          program::visit_accesses(op.action, [&](program::Access access, const program::View& view) {
            if (p.buffer_of(view).name != "layer_weights") return;
            if (access == program::Access::write) {
              layer_in[view.buffer] = op.label.layer;
            } else {
              EXPECT_EQ(layer_in.at(view.buffer), op.label.layer) << program::title(op);
              ++reads;
            }
          });
        }
        EXPECT_GT(reads, 100);
      }
    }
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
