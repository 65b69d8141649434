#include "sweep/require_gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/errors.h"

namespace harness::sweep {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Names = std::vector<std::string>;

// `ranks` ranks on each of `nodes` nodes, every one of them shown these GPUs.
std::vector<job::RankPlace> places(int nodes, int ranks, int on_node, const std::vector<Names>& by_local_rank) {
  std::vector<job::RankPlace> all;
  for (int node = 0; node < nodes; ++node) {
    for (int local = 0; local < ranks; ++local) {
      job::RankPlace p;
      p.rank = static_cast<int>(all.size());
      p.node = node;
      p.host = "node" + std::to_string(node);
      p.gpus.on_node = on_node;
      p.gpus.names = by_local_rank[static_cast<std::size_t>(local) % by_local_rank.size()];
      p.gpus.count = static_cast<int>(p.gpus.names.size());
      all.push_back(p);
    }
  }
  return all;
}

// The message of require_gpus(); "" where it throws none.
std::string refusal(const std::vector<job::RankPlace>& all, bool share_gpus, const std::string& config) {
  return test::error_of([&] { require_gpus(all, share_gpus, config); });
}

TEST(RequireGpus, NoGpusAreOneMessage) {
  const std::string message = refusal(places(16, 8, 0, {{}}), false, "configs/16node.yaml");
  EXPECT_THAT(message, HasSubstr("16 of 16 nodes have none: node0, node1, "));
  EXPECT_THAT(message, HasSubstr("and 8 more"));
  EXPECT_THAT(message, HasSubstr("`harness plan configs/16node.yaml --ranks 128`"));
  EXPECT_THAT(message, HasSubstr("`backend: cpu`"));
  EXPECT_THAT(message, Not(HasSubstr("\n")));
  EXPECT_NE(refusal(places(1, 1, 0, {{}}), true, "a"), "") << "nothing to share";
  EXPECT_THAT(refusal(places(1, 1, 4, {{}}), false, "a"), HasSubstr("CUDA_VISIBLE_DEVICES hides"));
}

TEST(RequireGpus, OneNodeWithoutIsNamed) {
  auto all = places(3, 2, 2, {{"0", "1"}});
  for (job::RankPlace& p : all) {
    if (p.node == 1) p.gpus = {0, 0, {}};
  }
  const std::string message = refusal(all, false, "a.yaml");
  EXPECT_THAT(message, HasSubstr("1 of 3 nodes have none: node1."));
}

TEST(RequireGpus, EveryRankHasAGpuOfItsOwn) {
  EXPECT_EQ(refusal(places(2, 4, 4, {{"0", "1", "2", "3"}}), false, "a"), "");
  EXPECT_EQ(refusal(places(2, 2, 4, {{"0", "1", "2", "3"}}), false, "a"), "");
  const std::string crowded = refusal(places(2, 4, 2, {{"0", "1"}}), false, "a");
  EXPECT_THAT(crowded, HasSubstr("node0 has 4 ranks and 2 GPUs, node1 has 4 ranks and 2 GPUs"));
  EXPECT_THAT(crowded, HasSubstr("measure.share_gpus=true"));
  EXPECT_EQ(refusal(places(2, 4, 2, {{"0", "1"}}), true, "a"), "");
}

TEST(RequireGpus, ALauncherMayShowEachTaskItsOwnGpu) {
  EXPECT_EQ(refusal(places(2, 2, 8, {{"3"}, {"5"}}), false, "a"), "");
  EXPECT_EQ(refusal(places(1, 2, 8, {{"0 of task 0"}, {"0 of task 1"}}), false, "a"), "");
  EXPECT_EQ(refusal(places(1, 4, 8, {{"0", "1"}, {"2", "3"}}), false, "a"), "");
  EXPECT_THAT(refusal(places(1, 2, 8, {{"3"}}), false, "a"), HasSubstr("2 ranks and 1 GPU."));
}

TEST(RequireGpus, WhatCannotBeToldIsLeftToTheWorkers) {
  auto all = places(1, 8, 1, {{"0"}});
  for (job::RankPlace& p : all) p.gpus = {};
  EXPECT_EQ(refusal(all, false, "a"), "");
}

}  // namespace
}  // namespace harness::sweep
