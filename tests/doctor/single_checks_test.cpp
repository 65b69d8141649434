// Particulars of single checks.
#include <gtest/gtest.h>

#include <algorithm>

#include "check_rows.h"

namespace harness::doctor {
namespace {

using namespace check_rows;

TEST(Checks, AFabricManagerOutsideOfTheContainerIsNotMissed) {
  Node node = test::healthy_node();
  both(unset("daemon/fabric_manager"), set("os/container", "yes"))(node);
  EXPECT_EQ(worst(found("gpu.fabric_manager", node)), Verdict::unknown);
}

// Each driver of the CPUs' clock has its own switch, and where there is no faster step none is missed.
TEST(Checks, TurboThatIsOffHasTheRemedyOfItsDriver) {
  const auto said = [](const NodeChange& change) {
    Node node = test::healthy_node();
    change(node);
    const Finding finding = found("cpu.governor", node).front();
    return fmt::format("{} {}", name_of(finding.verdict), finding.remedy.substr(0, finding.remedy.find(',')));
  };
  const std::string cpu = "/sys/devices/system/cpu/";
  EXPECT_EQ(said(set("cpu/no_turbo", "1")), "warn echo 0 > " + cpu + "intel_pstate/no_turbo");
  EXPECT_EQ(said(set("cpu/no_turbo", "0")), "pass ");
  EXPECT_EQ(said(set("cpu/boost", "0")), "warn echo 1 > " + cpu + "cpufreq/boost");
  EXPECT_EQ(said(both(set("cpu/boost", "0"), set("cpu/boost_headroom", "yes"))),
            "warn echo 1 > " + cpu + "cpufreq/boost");
  EXPECT_EQ(said(both(set("cpu/boost", "0"), set("cpu/boost_headroom", "no"))), "pass ");
  EXPECT_EQ(said(both(set("cpu/boost", "0"), hide("cpu/boost_headroom"))), "warn echo 1 > " + cpu + "cpufreq/boost");
  EXPECT_EQ(said(set("cpu/boost", "1")), "pass ");
}

// How many of eight equal ports are down, for each number, with a GPU for each adapter and without GPUs.
TEST(Checks, APortThatIsDownBesideItsEqualsIsMissed) {
  for (const bool gpus : {true, false}) {
    for (std::size_t down = 0; down <= 8; ++down) {
      Node node = test::healthy_node();
      if (!gpus) {
        for (const auto& fact : test::healthy_node().facts) {
          if (fact.first.starts_with("gpu/")) unset(fact.first)(node);
        }
      }
      for (std::size_t i = 0; i < down; ++i) {
        node.facts.set(fmt::format("port/mlx5_{}/1/state", i), "DOWN");
        node.facts.set(fmt::format("port/mlx5_{}/1/phys_state", i), "Polling");
      }
      const auto findings = found("ib.state", node);
      const std::string where = fmt::format("{} down, {}", down, gpus ? "GPUs" : "no GPU");
      const bool may_be_spare = !gpus && down >= 4 && down < 8;
      EXPECT_EQ(worst(findings), down == 0 || may_be_spare ? Verdict::pass : Verdict::warn) << where;
      if (down == 0 || down == 8 || may_be_spare) continue;
      EXPECT_EQ(findings.size(), down) << where;
      EXPECT_EQ(findings.front().evidence,
                fmt::format("port mlx5_0:1 is DOWN (Polling): {} of 8 equal adapters are active", 8 - down));
    }
  }
}

// Ports that nobody means to use may be down.
TEST(Checks, APortThatIsSpareIsNotMissed) {
  const NodeChange down = both(set("port/mlx5_3/1/state", "DOWN"), set("port/mlx5_3/1/phys_state", "Polling"));
  const auto said = [](const Node& node, const std::vector<Node>& all) {
    const Finding finding = judge(check_named("ib.state"), node, Cluster(all)).front();
    return fmt::format("{}: {}", name_of(finding.verdict), finding.evidence);
  };
  Node node = test::healthy_node();
  down(node);
  EXPECT_EQ(said(node, {node}).substr(0, 4), "warn");
  EXPECT_EQ(said(node, {node, node}), "pass: 7 active ports; not active: mlx5_3:1");  // no node uses it
  Node healthy = test::healthy_node();
  EXPECT_EQ(said(node, {node, healthy}).substr(0, 4), "warn");
  EXPECT_EQ(said(node, {node, healthy, healthy}).substr(0, 4), "fail");  // most nodes use it
  Node chosen = node;
  set_in_ranks("env/NCCL_IB_HCA", "^mlx5_3")(chosen);
  EXPECT_EQ(said(chosen, {chosen}).substr(0, 4), "pass");
  set_in_ranks("env/NCCL_IB_HCA", "mlx5_3")(chosen);
  EXPECT_EQ(said(chosen, {chosen}).substr(0, 4), "fail");
  Node fewer_gpus = node;
  for (const std::string& address : {test::gpu_address(6), test::gpu_address(7)}) {
    for (const auto& fact : test::healthy_node().facts) {
      if (fact.first.starts_with("gpu/" + address)) unset(fact.first)(fewer_gpus);
    }
  }
  EXPECT_EQ(said(fewer_gpus, {fewer_gpus}).substr(0, 4), "pass");  // one for each GPU is up
  // The second port of a card whose first one is active.
  Node dual = node;
  set("hca/mlx5_3/path",
      dual.facts.text("hca/mlx5_2/path").substr(0, dual.facts.text("hca/mlx5_2/path").size() - 1) + "1")(dual);
  EXPECT_EQ(said(dual, {dual}).substr(0, 4), "pass");
  Node other_kind = node;
  set("hca/mlx5_3/board", "MT_0000000359")(other_kind);
  EXPECT_EQ(said(other_kind, {other_kind}).substr(0, 4), "pass");
}

// Slurm with ConstrainDevices: each task sees its own GPU as number 0, and the job has half of the node.
TEST(Checks, ARankIsHeldAgainstTheGpusThatItMayUse) {
  Node node = test::healthy_node();
  node.ranks.resize(4);
  for (int i = 0; i < 8; ++i) {
    const std::string address = test::gpu_address(i);
    node.facts.set("gpu/" + address + "/cpus", i < 4 ? "0-3" : "4-7");
    for (Rank& rank : node.ranks) rank.facts.set("gpu/" + address, rank.rank == i ? "yes" : "no");
  }
  for (Rank& rank : node.ranks) {
    rank.facts.set("bound/cpus", "0-3");
    rank.facts.set("env/CUDA_VISIBLE_DEVICES", "0");
  }
  EXPECT_EQ(worst(found("rank.near_gpu", node)), Verdict::pass) << found("rank.near_gpu", node).front().evidence;
  const std::string far = test::gpu_address(3);
  node.facts.set("gpu/" + far + "/cpus", "4-7");
  EXPECT_EQ(found("rank.near_gpu", node).front().evidence, "the job may use none of the CPUs near 1 GPU: " + far);
  node.ranks[0].facts.set("bound/cpus", "0-7");
  EXPECT_NE(found("rank.near_gpu", node).front().evidence.find("3 (GPU " + far + ")"), std::string::npos);
  EXPECT_EQ(found("rank.gpus", node).front().evidence, "4 ranks and 4 GPUs that the job may use");
  for (Rank& rank : node.ranks) rank.facts.set("gpu/" + far, "no");
  EXPECT_EQ(worst(found("rank.gpus", node)), Verdict::fail);
}

TEST(Checks, OneRankOfManyGpusIsToldHowToStartMore) {
  Node node = test::healthy_node();
  node.ranks.resize(1);
  const Finding only = found("rank.gpus", node).front();
  EXPECT_EQ(only.verdict, Verdict::info);
  EXPECT_EQ(only.evidence, "1 rank and 8 GPUs: only one GPU is under load");
  EXPECT_NE(only.remedy.find("--map-by ppr:8:node"), std::string::npos);
}

}  // namespace
}  // namespace harness::doctor
