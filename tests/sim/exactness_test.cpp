// With realistic costs: simulating one rank of each class equals simulating all ranks, and a collective on an idle
// fabric takes the time of its formula.
#include <gtest/gtest.h>

#include <tuple>

#include "machine/conditions.h"
#include "program/expand.h"
#include "program/program.h"
#include "sim/costs.h"
#include "sim/rank_classes.h"
#include "support/soak.h"
#include "workloads/gpt/gpt.h"
#include "workloads/workload.h"

namespace harness::sim {
namespace {

using program::Axis;

config::Calibration realistic() {
  config::Calibration c;
  c.product_share = 0.8;
  c.memory_share = 0.85;
  c.network_share = 0.9;
  c.attention_forward = 0.6;
  c.attention_backward = 0.5;
  c.network_start_s = 60e-6;
  c.network_hop_s = 20e-6;
  c.message_start_s = 30e-6;
  c.taken_by_communication = 0.13;
  c.kept_by_communication = 0.9;
  c.software.host_s = 1e-6;
  c.software.kernel_s = 2e-6;
  return c;
}

const Device h100{.flops = 989e12, .memory_bytes_per_s = 3.35e12, .multiprocessors = 132};

Network nodes_of(int ranks, int per_node) {
  return {.rank_bytes_per_s = 450e9,
          .node_bytes_per_s = 400e9,
          .switches_reduce = true,
          .node_of = machine::Topology::node_by_node(ranks, per_node).node_of};
}

// `context`: how many ranks along the data axis share a sequence.
config::Settings settings_of(const program::Layout& layout, int context) {
  config::Settings settings;
  settings.precision = config::Precision::bf16;
  settings.global_batch_size = 4 * layout[Axis::data];
  settings.layout = layout;
  settings.layout[Axis::context] = context;
  settings.sequence_parallel = layout[Axis::tensor] > 1;
  settings.bucket_size_bytes = 1 << 20;
  return settings;
}

program::ProgramSet step_of(const program::Layout& layout, int context) {
  const config::Model model{"custom", 2 * layout[Axis::pipeline], 256, 8, 512, 128};
  return gpt::programs(model, settings_of(layout, context), layout);
}

// Expects the same times of every rank, whether one rank of each class or all ranks are simulated.
void expect_all_ranks_agree(const program::Layout& layout, const config::Faults& faults, std::size_t most_classes,
                            int per_node = 8, int context = 1) {
  const program::ProgramSet set = step_of(layout, context), all = program::expand(set);
  Network network = nodes_of(layout.ranks(), per_node);
  network.node_of = places(faults, network.node_of);
  const config::Calibration calibration = realistic();
  const Condition condition = condition_of(faults, config::hardware_named("h100-sxm"), network, calibration);
  config::Settings settings;
  settings.layout[Axis::context] = context;
  const auto simulated = [&](const RankClasses& classes) {
    double largest = 0;
    return simulate(classes, costs_of(classes, h100, network, calibration, settings, condition, largest));
  };
  const std::vector<int> marks = marks_of(set, network, condition, context);
  const RankClasses classes(set, marks), ranks(all, marks);
  EXPECT_LE(classes.list().size(), most_classes);
  ASSERT_EQ(std::ssize(ranks.list()), layout.ranks());
  const SimulatedStep by_class = simulated(classes), by_rank = simulated(ranks);
  EXPECT_EQ(by_class.length, by_rank.length);
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    const auto &one = by_class.times[classes.class_of(rank)], &other = by_rank.times[ranks.class_of(rank)];
    for (std::size_t id = 0; id < one.size(); ++id) {
      ASSERT_EQ(std::tuple(one[id].ready, one[id].start, one[id].end),
                std::tuple(other[id].ready, other[id].start, other[id].end))
          << "rank " << rank << ", operation " << id;
    }
  }
}

config::Faults one_of_each(int last_rank) {
  config::Faults faults;
  faults.slow_gpus = {{.rank = last_rank / 2, .speed = 0.8}};
  faults.slow_links = {{.node = 1, .share = 0.5}};
  faults.narrow_pcie = {{.rank = last_rank, .node = -1, .share = 0.25}};
  return faults;
}

TEST(Exactness, OneRankOfEachClassIsAllOfThem) {
  const int data = test::soaking() ? 32 : 4;  // 512 or 64 ranks
  const program::Layout layout{{Axis::tensor, 4}, {Axis::data, data}, {Axis::pipeline, 4}};
  expect_all_ranks_agree(layout, {}, 4);
}

TEST(Exactness, SoItIsWhereSomethingIsWrong) {
  const int data = test::soaking() ? 32 : 4;
  const program::Layout layout{{Axis::tensor, 4}, {Axis::data, data}, {Axis::pipeline, 4}};
  const int ranks = layout.ranks();
  expect_all_ranks_agree(layout, one_of_each(ranks - 1), 64);
  // A slow rank is its own class. Ranks that depend on it form classes by how they do: its tensor group, the other
  // stages of its replica, and the ranks of other replicas that reduce gradients with these.
  config::Faults one_slow;
  one_slow.slow_gpus = {{.rank = 21, .speed = 0.8}};
  expect_all_ranks_agree(layout, one_slow, 16);
  config::Faults everywhere;
  everywhere.socket_bytes_per_s = 4e9;
  everywhere.tensor_across_nodes = true;
  expect_all_ranks_agree(layout, everywhere, 4);  // it breaks no symmetry
}

// Some groups span two nodes and others one, some messages leave their node and others do not, and the nodes of a group
// send for different numbers of other groups.
TEST(Exactness, SoItIsWhereGroupsStandUnalike) {
  expect_all_ranks_agree({{Axis::tensor, 4}, {Axis::data, 3}, {Axis::pipeline, 2}}, {}, 24, 6);
  expect_all_ranks_agree({{Axis::data, 5}, {Axis::pipeline, 2}}, {}, 10, 8);
  expect_all_ranks_agree({{Axis::data, 4}, {Axis::pipeline, 3}}, {}, 12, 6);
  expect_all_ranks_agree({{Axis::tensor, 4}, {Axis::data, 4}}, {}, 16, 7);
  config::Faults dealt;
  dealt.tensor_across_nodes = true;
  expect_all_ranks_agree({{Axis::tensor, 2}, {Axis::data, 3}, {Axis::pipeline, 2}}, dealt, 12, 8);
}

// Of three rings of four ranks that pass keys and values, the middle one is on both nodes.
TEST(Exactness, SoItIsWhereRingsStandUnalike) {
  config::Faults one_slow;
  one_slow.slow_links = {{.node = 1, .share = 0.5}};
  expect_all_ranks_agree({{Axis::data, 12}}, one_slow, 4, 6, 4);
}

// A step of twenty equal collectives over an idle fabric takes twenty times the formula, with NCCL's own choice, plus
// the loss's all-reduce of four bytes; to the nanosecond.
TEST(Exactness, ACollectiveOnAnIdleFabricTakesItsFormula) {
  struct Case {
    program::Collective kind;
    int ranks, per_node;
  };
  config::Calibration calibration = realistic();
  calibration.software.host_s = calibration.software.kernel_s = 0;
  calibration.memory_share = 1e9;  // nothing else in the step takes time
  for (const Case& c :
       {Case{program::Collective::all_reduce, 8, 8}, Case{program::Collective::all_reduce, 128, 8},
        Case{program::Collective::all_gather, 16, 8}, Case{program::Collective::reduce_scatter, 4, 1}}) {
    config::Settings settings;
    settings.workload = "collective";
    settings.collective = c.kind;
    settings.message_bytes = 64 << 20;
    settings.ranks = c.ranks;
    const program::Layout layout{{Axis::data, c.ranks}};
    const program::ProgramSet set = workloads::build_programs({}, settings, layout);
    const RankClasses classes(set);
    const Network network = nodes_of(c.ranks, c.per_node);
    const Condition healthy;
    double largest = 0;
    const SimulatedStep step =
        simulate(classes, costs_of(classes, h100, network, calibration, settings, healthy, largest));
    const Spread spread{c.ranks, c.ranks / c.per_node, c.per_node, 1};
    const auto formula = [&](program::Collective kind, double bytes) {
      return CollectiveTime(kind, spread, network, calibration, settings).seconds(bytes);
    };
    const double one = formula(c.kind, 64 << 20);
    const double closing = formula(program::Collective::all_reduce, 4);
    EXPECT_NEAR(seconds_of(step.length), settings.repetitions * one + closing, 1e-9) << c.ranks;
  }
}

}  // namespace
}  // namespace harness::sim
