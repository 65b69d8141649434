#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "plan/plan.h"

namespace harness {
namespace {

const std::filesystem::path configs = std::filesystem::path(HARNESS_SOURCE_DIR) / "configs";

// How many ranks each committed configuration is written for.
const std::map<std::string, int> ranks_of{{"laptop.yaml", 4}, {"16node.yaml", 128}, {"tiny128.yaml", 128}, {"check-layouts.yaml", 4}};

Plan plan_of(const std::string& name, const std::vector<std::string>& overrides = {}) {
  return make_plan(load_experiment((configs / name).string(), overrides), ranks_of.at(name));
}

TEST(Configs, EachLoadsAndEveryCaseIsPossible) {
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(configs)) {
    if (entry.path().extension() != ".yaml") continue;
    const std::string name = entry.path().filename().string();
    found.insert(name);
    ASSERT_TRUE(ranks_of.contains(name)) << name << " is not in this test";
    const Plan plan = plan_of(name);
    for (const Case& c : plan.cases) {
      EXPECT_EQ(c.impossible, "") << name << " " << c.name;
      EXPECT_TRUE(c.notes.empty()) << name << " " << c.name << ": " << c.notes.front();
    }
  }
  EXPECT_EQ(found.size(), ranks_of.size());
}

TEST(Configs, SixteenNodesSweepWhatOneWould) {
  const Plan plan = plan_of("16node.yaml");
  EXPECT_EQ(plan.experiment.model.name, "gpt3-1.3b");
  EXPECT_EQ(plan.experiment.backend, BackendKind::cuda);
  ASSERT_TRUE(plan.experiment.hardware);
  EXPECT_DOUBLE_EQ(plan.experiment.hardware->peak_bf16_flops, 989.4e12);
  std::set<std::string> variables;
  bool inside = false, across = false;
  for (const Case& c : plan.cases) {
    variables.insert(c.variable);
    if (c.variable == "layout") (c.layout[Axis::tensor] > 8 ? across : inside) = true;
  }
  for (const char* v : {"micro_batch_size", "layout", "overlap_grad_reduce", "nccl_algo", "nccl_proto", "ranks"}) {
    EXPECT_TRUE(variables.contains(v)) << v;
  }
  EXPECT_TRUE(inside && across);
  EXPECT_TRUE(plan_of("16node.yaml", {"backend=sim"}).cases.size() == plan.cases.size());
}

TEST(Configs, Tiny128IsAtMostEightBlocks) {
  EXPECT_LE(plan_of("tiny128.yaml").schedule.size(), 8u);
}

TEST(Configs, EveryHardwareFileLoads) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(configs / "hardware")) {
    const std::string name = entry.path().stem().string();
    const auto e = load_experiment((configs / "laptop.yaml").string(), {"hardware=" + name});
    ASSERT_TRUE(e.hardware) << name;
    EXPECT_FALSE(e.hardware->source.empty());
    EXPECT_GT(e.hardware->memory_bytes, 79e9);
    // Dense figures: a tensor core makes 16 times the FLOP of the plain pipe at most, twice that only with sparsity.
    EXPECT_GT(e.hardware->peak_bf16_flops, 10 * e.hardware->peak_fp32_flops) << name;
    EXPECT_LT(e.hardware->peak_bf16_flops, 20 * e.hardware->peak_fp32_flops) << name;
    ++files;
  }
  EXPECT_GE(files, 3);
}

}  // namespace
}  // namespace harness
