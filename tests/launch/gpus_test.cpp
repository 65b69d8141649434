#include "launch/gpus.h"

#include <gtest/gtest.h>

#include <fstream>

#include "launch/gpu_check.h"

namespace harness {
namespace {

namespace fs = std::filesystem;

class Gpus : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "launch_gpus_XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  void TearDown() override { fs::remove_all(root_); }
  void folder(const std::string& path) const { fs::create_directories(root_ / path); }
  void file(const std::string& path) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << "";
  }
  void driver_lists(int gpus) const {
    for (int i = 0; i < gpus; ++i) folder("proc/driver/nvidia/gpus/0000:" + std::to_string(10 + i) + ":00.0");
  }
  GpuView seen(const GpuEnvironment& environment = {}) const { return find_gpus(environment, root_); }
  int count_with(const std::string& visible) const { return seen({true, visible, ""}).count; }
  fs::path root_;
};

using Names = std::vector<std::string>;

TEST_F(Gpus, AMachineWithoutADriverHasNone) {
  EXPECT_EQ(seen().count, 0);
  EXPECT_EQ(seen().on_node, 0);
  EXPECT_TRUE(seen().names.empty());
  EXPECT_EQ(count_with("0,1"), 0);
}

TEST_F(Gpus, TheDriversListCounts) {
  driver_lists(4);
  file("dev/nvidia0");  // device files come with first use
  EXPECT_EQ(seen().count, 4);
  EXPECT_EQ(seen().names, (Names{"0", "1", "2", "3"}));
}

TEST_F(Gpus, ElseTheDeviceFilesDo) {
  for (const char* name : {"nvidia0", "nvidia1", "nvidia10", "nvidiactl", "nvidia-uvm", "nvidia-caps", "nvidia0x"}) {
    file(std::string("dev/") + name);
  }
  EXPECT_EQ(seen().count, 3);
}

TEST_F(Gpus, UnderAnotherDriverNothingCanBeTold) {
  file("dev/dxg");
  EXPECT_EQ(seen().count, -1);
  EXPECT_EQ(count_with("0"), -1);
}

TEST_F(Gpus, TheEnvironmentLimitsThemAsCudaDoes) {
  driver_lists(4);
  EXPECT_EQ(seen({true, "2, 0", ""}).names, (Names{"2", "0"}));
  EXPECT_EQ(count_with(""), 0);
  EXPECT_EQ(count_with("-1"), 0);
  EXPECT_EQ(count_with("NoDevFiles"), 0);
  EXPECT_EQ(count_with("1,9,2"), 1);  // it stops at the first that is not there
  EXPECT_EQ(seen({true, "GPU-8f1c,MIG-77", ""}).names, (Names{"GPU-8f1c", "MIG-77"}));
  EXPECT_EQ(seen({true, "0", "3"}).names, (Names{"0 of task 3"}));
  EXPECT_EQ(seen({true, "0,1", "3"}).names, (Names{"0", "1"}));
}

// `ranks` ranks on each of `nodes` nodes, every one of them shown these GPUs.
std::vector<RankPlace> places(int nodes, int ranks, int on_node, const std::vector<Names>& by_local_rank) {
  std::vector<RankPlace> all;
  for (int node = 0; node < nodes; ++node) {
    for (int local = 0; local < ranks; ++local) {
      RankPlace p;
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

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(GpuCheck, NoGpusAreOneMessage) {
  const std::string message = check_gpus(places(16, 8, 0, {{}}), false, "configs/16node.yaml");
  EXPECT_TRUE(has(message, "16 of 16 nodes show none: node0, node1, ")) << message;
  EXPECT_TRUE(has(message, "and 8 more")) << message;
  EXPECT_TRUE(has(message, "`harness plan configs/16node.yaml --ranks 128`")) << message;
  EXPECT_TRUE(has(message, "`backend: cpu`")) << message;
  EXPECT_FALSE(has(message, "\n")) << message;
  EXPECT_NE(check_gpus(places(1, 1, 0, {{}}), true, "a"), "") << "nothing to share";
  EXPECT_TRUE(has(check_gpus(places(1, 1, 4, {{}}), false, "a"), "CUDA_VISIBLE_DEVICES hides"));
}

TEST(GpuCheck, OneNodeWithoutIsNamed) {
  auto all = places(3, 2, 2, {{"0", "1"}});
  for (RankPlace& p : all) {
    if (p.node == 1) p.gpus = {0, 0, {}};
  }
  const std::string message = check_gpus(all, false, "a.yaml");
  EXPECT_TRUE(has(message, "1 of 3 nodes show none: node1.")) << message;
}

TEST(GpuCheck, EveryRankHasAGpuOfItsOwn) {
  EXPECT_EQ(check_gpus(places(2, 4, 4, {{"0", "1", "2", "3"}}), false, "a"), "");
  EXPECT_EQ(check_gpus(places(2, 2, 4, {{"0", "1", "2", "3"}}), false, "a"), "");
  const std::string crowded = check_gpus(places(2, 4, 2, {{"0", "1"}}), false, "a");
  EXPECT_TRUE(has(crowded, "node0 has 4 ranks and 2 GPUs, node1 has 4 ranks and 2 GPUs")) << crowded;
  EXPECT_TRUE(has(crowded, "measure.share_gpus=true")) << crowded;
  EXPECT_EQ(check_gpus(places(2, 4, 2, {{"0", "1"}}), true, "a"), "");
}

TEST(GpuCheck, ALauncherMayShowEachTaskItsOwnGpu) {
  EXPECT_EQ(check_gpus(places(2, 2, 8, {{"3"}, {"5"}}), false, "a"), "");
  EXPECT_EQ(check_gpus(places(1, 2, 8, {{"0 of task 0"}, {"0 of task 1"}}), false, "a"), "");
  EXPECT_EQ(check_gpus(places(1, 4, 8, {{"0", "1"}, {"2", "3"}}), false, "a"), "");
  EXPECT_TRUE(has(check_gpus(places(1, 2, 8, {{"3"}}), false, "a"), "2 ranks and 1 GPU."));
}

TEST(GpuCheck, WhatCannotBeToldIsLeftToTheWorkers) {
  auto all = places(1, 8, 1, {{"0"}});
  for (RankPlace& p : all) p.gpus = {};
  EXPECT_EQ(check_gpus(all, false, "a"), "");
}

}  // namespace
}  // namespace harness
