// Shards inside a node, with copies on other nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "program/lower.h"
#include "sharded_job.h"

namespace harness::workloads {
namespace {

using config::Sharding;
using ::testing::HasSubstr;

Job hybrid(int tp, int pp, int dp, int of_node, Sharding sharding, int micro_batches = 2) {
  Job j = sharded(tp, pp, dp, micro_batches);
  j.settings.sharding = sharding;
  j.settings.sharding_group = config::ShardingGroup::node;
  j.layout.replicas_of_node = of_node;
  return j;
}

// As if the replicas of a node were all there are.
Job of_one_node(Job j) {
  j.settings.sharding_group = config::ShardingGroup::data;
  j.settings.global_batch_size /= j.layout[program::Axis::data] / j.layout.replicas_of_node;
  j.layout[program::Axis::data] = j.layout.replicas_of_node;
  return j;
}

// A rank holds an n-th of what sharding names, n the replicas of its node, however many nodes there are. Inside the
// node it sends what it would if there were no other; across, the part of each bucket that it has, once per reduction.
TEST(ShardingGroup, MemoryAndTrafficEqualClosedFormula) {
  for (const auto& [dp, of_node] : {std::array{4, 2}, std::array{8, 4}, std::array{6, 3}}) {
    for (const Sharding sharding : {Sharding::optimizer, Sharding::gradients, Sharding::parameters}) {
      for (const auto type : {program::DType::f32, program::DType::bf16}) {
        const int m = 3;
        Job j = hybrid(1, 1, dp, of_node, sharding, m);
        j.settings.grad_reduce_type = type;
        const Job alone = of_one_node(j);
        const auto set = build(j), node = build(alone);
        const Elements n = elements_of(j);
        EXPECT_EQ(n.flat, elements_of(alone).flat);
        EXPECT_EQ(bytes_of_model(set.roles[0]), bytes_of_model(node.roles[0]));
        for (const auto& [group, kind] : {std::pair{"data", "reduce_scatter"}, std::pair{"gather", "all_gather"},
                                          std::pair{"data", "all_reduce"}}) {
          EXPECT_EQ(traffic_of(set, 0, group, kind).messages, traffic_of(node, 0, group, kind).messages) << kind;
          EXPECT_EQ(traffic_of(set, 0, group, kind).bytes, traffic_of(node, 0, group, kind).bytes) << kind;
        }
        const std::int64_t reductions = sharding == Sharding::optimizer ? 1 : m;
        const auto across = traffic_of(set, 0, "nodes", "all_reduce");
        EXPECT_EQ(across.messages, reductions * n.buckets);
        EXPECT_EQ(across.bytes, static_cast<double>(reductions * program::size_of(type) * n.flat / of_node));
        EXPECT_EQ(traffic_of(node, 0, "nodes", "all_reduce").messages, 0);
      }
    }
  }
}

TEST(ShardingGroup, VerifiesByRoleAndByRank) {
  for (const auto& [tp, pp, dp, of_node] : {std::array{1, 1, 4, 2}, std::array{2, 1, 6, 2}, std::array{2, 2, 4, 2}}) {
    for (const Sharding sharding : {Sharding::optimizer, Sharding::gradients, Sharding::parameters}) {
      if (pp > 1 && sharding > Sharding::optimizer) continue;  // refused
      for (const bool overlap : {true, false}) {
        Job j = hybrid(tp, pp, dp, of_node, sharding, 4);
        j.settings.sequence_parallel = overlap;
        j.settings.overlap_optimizer = overlap;
        j.settings.overlap_grad_reduce = overlap;
        j.settings.overlap_param_gather = overlap;
        const auto set = build(j);
        EXPECT_EQ(texts(program::verify(set)), "");
        EXPECT_EQ(texts(program::verify(program::expand(set))), "");
        EXPECT_EQ(texts(program::verify(program::lower(set, 0))), "");
      }
    }
  }
}

TEST(ShardingGroup, IsRefusedWithoutAnyOneOfItsWaits) {
  for (const Sharding sharding : {Sharding::optimizer, Sharding::gradients, Sharding::parameters}) {
    Job j = hybrid(1, 1, 4, 2, sharding);
    j.settings.overlap_optimizer = true;
    const auto of_exchange = [](const program::Operation& op, const program::Operation& awaited) {
      return (op.stream == across_stream || awaited.stream == across_stream) &&
             op.label.phase != program::Phase::finish;
    };
    EXPECT_GE(needed_waits(build(j), 0, of_exchange), 8);
  }
}

// The own part of a rank is that of its place on its node: of all replicas together it would be another one.
TEST(ShardingGroup, IsRefusedOverOtherRanksThanThoseThatDivide) {
  auto set = build(hybrid(1, 1, 4, 2, Sharding::optimizer));
  std::swap(set.groups[gpt::data_group].replicas, set.groups[gpt::across_group].replicas);
  EXPECT_THAT(texts(program::verify(set)), HasSubstr("is not that of a member of group data"));
}

TEST(ShardingGroup, OfAllReplicasIsTheSameProgram) {
  Job j = hybrid(2, 1, 4, 4, Sharding::parameters);  // all of them on one node
  const auto hybrid_hash = program::hash(build(j));
  j.settings.sharding_group = config::ShardingGroup::data;
  EXPECT_EQ(program::hash(build(j)), hybrid_hash);
  j.layout.replicas_of_node = 0;  // where ranks stand changes nothing where nobody asks
  EXPECT_EQ(program::hash(build(j)), hybrid_hash);
  j.layout.replicas_of_node = 2;
  EXPECT_EQ(program::hash(build(j)), hybrid_hash);
  j.settings.sharding_group = config::ShardingGroup::node;
  EXPECT_NE(program::hash(build(j)), hybrid_hash);
}

TEST(ShardingGroup, NeedsNodesThatAreAlikeAndHaveSeveralReplicas) {
  const auto why = [](int dp, int of_node) {
    const Job j = hybrid(1, 1, dp, of_node, Sharding::optimizer);
    return gpt_workload().why_impossible_on(j.model, j.settings, j.layout);
  };
  EXPECT_EQ(why(4, 2), "");
  EXPECT_EQ(why(4, 4), "");
  EXPECT_EQ(why(1, 0), "");  // nothing to divide
  EXPECT_THAT(why(4, 0), HasSubstr("it is not known how many ranks share a node; `plan --ranks-per-node N` says it"));
  EXPECT_THAT(why(4, 1), HasSubstr("each of the 4 replicas is on a node of its own"));
  EXPECT_THAT(why(4, program::Layout::uneven), HasSubstr("not every node has as many of the 4 replicas"));
  Job none = hybrid(1, 1, 4, 0, Sharding::none);
  EXPECT_EQ(gpt_workload().why_impossible_on(none.model, none.settings, none.layout), "");
}

}  // namespace
}  // namespace harness::workloads
