#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>

#include "base/text.h"
#include "plan/plan.h"
#include "program/program.h"
#include "support/files.h"
#include "support/paths.h"
#include "support/soak.h"
#include "workloads/workload.h"

namespace harness::plan {
namespace {

using ::testing::HasSubstr;

const std::filesystem::path configs = std::filesystem::path(test::source_dir()) / "configs";

// The number of ranks that each committed configuration is written for.
const std::map<std::string, int> ranks_of{
    {"laptop.yaml", 2},      {"16node.yaml", 128},      {"16node-ladder.yaml", 128},
    {"tiny128.yaml", 128},   {"check-layouts.yaml", 4}, {"h200.yaml", 1},
    {"collectives.yaml", 4}, {"gemm.yaml", 2},          {"gpu-short.yaml", 1},
    {"first-light.yaml", 1}, {"pipeline.yaml", 8},      {"memory.yaml", 2},
    {"sharding.yaml", 2},    {"llama3-8b.yaml", 64},    {"scenarios/16node-as-found.yaml", 128},
    {"job.yaml", 128},       {"sequences.yaml", 2},     {"precision.yaml", 2},
    {"data.yaml", 2},        {"compression.yaml", 2}};

Plan plan_of(const std::string& name, const std::vector<std::string>& overrides = {}) {
  return make_plan(config::load_experiment((configs / name).string(), overrides), ranks_of.at(name));
}

TEST(Configs, EachLoadsAndEveryCaseIsPossible) {
  std::set<std::string> found;
  std::vector<std::filesystem::path> files;
  for (const auto& folder : {configs, configs / "scenarios"}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  }
  for (const std::filesystem::path& file : files) {
    if (file.extension() != ".yaml") continue;
    const std::string name = std::filesystem::relative(file, configs).string();
    found.insert(name);
    ASSERT_TRUE(ranks_of.contains(name)) << name << " is not in this test";
    const Plan plan = plan_of(name);
    for (const PlannedCase& c : plan.cases) {
      EXPECT_EQ(c.impossible, "") << name << " " << c.name;
      EXPECT_TRUE(c.notes.empty()) << name << " " << c.name << ": " << c.notes.front();
    }
  }
  EXPECT_EQ(found.size(), ranks_of.size());
}

TEST(Configs, RunOnTheRanksThatTheDocumentationStartsThemOn) {
  const std::regex continued(R"(\\\n *)"), command(R"(-np (\d+) .*harness sweep configs/(\S+\.yaml)((?: --set \S+)*))");
  int commands = 0;
  for (const char* file : {"docs/running.md", "scripts/deploy/Dockerfile"}) {
    const std::string text = std::regex_replace(test::text_of(test::source_dir() + "/" + file), continued, "");
    for (std::sregex_iterator at(text.begin(), text.end(), command), end; at != end; ++at) {
      const std::string ranks = (*at)[1], name = (*at)[2], options = (*at)[3];
      std::vector<std::string> overrides = split_text(options, " --set ");
      std::erase(overrides, "");
      const config::Experiment e = config::load_experiment((configs / name).string(), overrides);
      for (const PlannedCase& c : make_plan(e, std::stoi(ranks)).cases) {
        EXPECT_EQ(c.impossible, "") << file << ": " << at->str() << ": " << c.name;
      }
      ++commands;
    }
  }
  EXPECT_GE(commands, 4);
}

// The hash decides at --resume and between two files whether a case still runs the same step. A code change that should
// not alter the steps must not alter this list. HARNESS_UPDATE_GOLDEN=1 rewrites it.
TEST(Configs, StepsAreThoseThatAreWrittenDown) {
  if (test::sanitized) GTEST_SKIP() << "its steps of 128 ranks take minutes, and others build the like";
  std::string lines;
  for (const auto& [name, ranks] : ranks_of) {
    const Plan plan = prepare(config::load_experiment((configs / name).string()), ranks, {});
    const config::Experiment& e = plan.experiment;
    for (const PlannedCase& c : plan.cases) {
      // A prediction folds some steps, which does not change the step itself.
      const std::uint64_t hash = program::hash(program::lower(workloads::build_programs(e.model, c.settings, c.layout),
                                                              config::fused_for(e.backend, c.settings)));
      if (!config::traits_of(e.backend).predicts()) {
        EXPECT_EQ(c.survey.program_hash, hash) << name << " " << c.name;
      }
      lines += fmt::format("{:016x} {} {}\n", hash, name, c.name);
    }
  }
  const std::string path = std::string(test::source_dir()) + "/tests/plan/step_hashes.txt";
  if (std::getenv("HARNESS_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << lines;
  EXPECT_EQ(lines, test::text_of(path));
}

// Adds the settings that the head of the file suggests for several nodes.
TEST(Configs, ShardsInsideANodeAreSweptOnSeveral) {
  const std::string path = (configs / "sharding.yaml").string();
  const config::Experiment e =
      config::load_experiment(path, {"combine=[{sharding: parameters, sharding_group: node}]"});
  const auto case_on = [&](int ranks_of_node) {
    return make_plan(e, 8, {}, Processes::as_needed, machine::Topology::node_by_node(8, ranks_of_node)).cases.back();
  };
  EXPECT_EQ(case_on(4).name, "sharding=parameters + sharding_group=node");
  EXPECT_EQ(case_on(4).impossible, "");
  EXPECT_THAT(case_on(4).notes, ::testing::IsEmpty());
  EXPECT_THAT(case_on(8).notes, ::testing::ElementsAre("sharding_group has no effect: all replicas share a node"));
  EXPECT_THAT(case_on(1).impossible, HasSubstr("on a node of its own"));
}

TEST(Configs, Tiny128IsAtMostEightBlocks) {
  EXPECT_LE(plan_of("tiny128.yaml").schedule.size(), 8u);
}

std::set<std::string> hardware_names() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(configs / "hardware")) {
    names.insert(entry.path().stem().string());
  }
  return names;
}

config::Hardware hardware_file(const std::string& name) {
  return config::load_experiment((configs / "laptop.yaml").string(), {"hardware=" + name}).hardware.value();
}

TEST(Configs, EveryHardwareFileLoadsAndNoDeviceIsInTwo) {
  int files = 0;
  std::map<std::string, std::string> owner;
  for (const std::string& name : hardware_names()) {
    const config::Hardware h = hardware_file(name);
    EXPECT_FALSE(h.source.empty()) << name;
    EXPECT_FALSE(h.devices.empty()) << name;
    EXPECT_GT(h.compute_capability, 0) << name;
    EXPECT_GT(h.peak_flops(config::Precision::fp32) + h.peak_flops(config::Precision::bf16), 10e12) << name;
    for (const std::string& device : h.gpu.empty() ? h.devices : std::vector<std::string>()) {  // of no machine's file
      EXPECT_TRUE(owner.emplace(device, name).second) << device << " is in " << owner[device] << " and in " << name;
      const auto found = config::find_hardware_for_device(device, (configs / "laptop.yaml").string());
      ASSERT_TRUE(found) << device;
      EXPECT_EQ(found->name, h.name) << device;
    }
    ++files;
  }
  EXPECT_GE(files, 18);
}

// Dense bf16 FLOP with fp32 sums per clock and SM of the tensor cores, from the architecture papers. GeForce cards have
// half the rate of their professional siblings.
double flop_per_clock(const std::string& file, int compute_capability) {
  if (file.starts_with("rtx-4090") || file.starts_with("rtx-5090")) return 512;
  const std::map<int, double> by_capability{{80, 2048}, {86, 1024}, {89, 1024}, {90, 4096}};
  return by_capability.at(compute_capability);
}

// A data sheet's figure with sparsity, or with fp16 sums, is twice this value.
TEST(Configs, PeaksAreWhatTheChipCanDo) {
  int checked = 0;
  for (const std::string& name : hardware_names()) {
    const config::Hardware h = hardware_file(name);
    if (h.peak_flops(config::Precision::tf32) > 0 && h.peak_flops(config::Precision::bf16) > 0) {
      EXPECT_NEAR(h.peak_flops(config::Precision::tf32) / h.peak_flops(config::Precision::bf16), 0.5, 0.015) << name;
    }
    if (h.boost_clock_hz == 0 || h.peak_flops(config::Precision::bf16) == 0) continue;
    ASSERT_GT(h.sms, 0) << name;
    const double flops = h.sms * h.boost_clock_hz * flop_per_clock(name, h.compute_capability);
    EXPECT_NEAR(h.peak_flops(config::Precision::bf16) / flops, 1, 0.03) << name;
    ++checked;
  }
  EXPECT_GE(checked, 12);
}

TEST(Configs, WhatTheHardwareCannotDoIsImpossible) {
  const auto impossible = [](const std::string& hardware) {
    std::string cases;
    for (const PlannedCase& c : plan_of("16node.yaml", {"hardware=" + hardware}).cases) {
      if (!c.impossible.empty()) cases += c.name + ": " + c.impossible + "\n";
    }
    return cases;
  };
  EXPECT_EQ(impossible("h100-sxm"), "");
  EXPECT_EQ(impossible("b200"), "");
  const std::string on_a100 = impossible("a100-sxm-80gb");
  EXPECT_TRUE(on_a100.starts_with("nccl_algo=AllReduce:NVLSTree: ")) << on_a100;
  EXPECT_THAT(on_a100, HasSubstr("A100 SXM4 80GB (compute capability 8.0)"));
  EXPECT_THROW(plan_of("16node.yaml", {"hardware=v100-sxm2"}), Error);  // its baseline is bf16
}

}  // namespace
}  // namespace harness::plan
