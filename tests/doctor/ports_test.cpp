// Ports of adapters that are not active: lost, spare, or not known.
#include <gtest/gtest.h>

#include "base/text.h"
#include "check_rows.h"
#include "doctor/check.h"

namespace harness::doctor {
namespace {

using namespace check_rows;

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
      const Verdict wrong = gpus && down == 8 ? Verdict::fail : Verdict::warn;
      EXPECT_EQ(worst(findings), down == 0 || may_be_spare ? Verdict::pass : wrong) << where;
      if (down == 0 || down == 8 || may_be_spare) continue;
      EXPECT_EQ(findings.size(), down) << where;
      EXPECT_EQ(findings.front().evidence,
                fmt::format("port mlx5_0:1 is DOWN (Polling): {} of 8 equal adapters are active", 8 - down));
    }
  }
}

// No port of a node is active, in each state that a port can have, and in none that it can.
TEST(Checks, ANodeBuiltForAFabricNeedsAnActivePort) {
  for (const char* state : {"DOWN", "INIT", "ARMED", "NOP", "", "garbage", "7"}) {
    const bool is_known = std::string(state).size() > 2;
    const Verdict fault = is_known && std::string(state) != "garbage" ? Verdict::fail : Verdict::unknown;
    Node node = test::healthy_node();
    for (int i = 0; i < 8; ++i) node.facts.set(fmt::format("port/mlx5_{}/1/state", i), state);
    EXPECT_EQ(worst(found("ib.state", node)), fault) << state;
    set_in_ranks("env/NCCL_IB_HCA", "^mlx5")(node);
    EXPECT_GE(worst(found("ib.state", node)), Verdict::warn) << state;
    Node one_gpu = test::healthy_node();
    for (int i = 0; i < 8; ++i) {
      one_gpu.facts.set(fmt::format("port/mlx5_{}/1/state", i), state);
      for (const auto& fact : test::healthy_node().facts) {
        if (i > 0 && fact.first.starts_with("gpu/" + test::gpu_address(i))) unset(fact.first)(one_gpu);
      }
    }
    EXPECT_EQ(worst(found("ib.state", one_gpu)), fault == Verdict::fail ? Verdict::warn : fault) << state;
    Node one_port = test::healthy_node();
    set(first_port + "state", state)(one_port);
    EXPECT_EQ(worst(found("ib.state", one_port)), fault == Verdict::fail ? Verdict::warn : fault) << state;
    // Seven are down, and the eighth does not tell.
    for (int i = 1; i < 8; ++i) one_port.facts.set(fmt::format("port/mlx5_{}/1/state", i), "DOWN");
    EXPECT_EQ(worst(found("ib.state", one_port)), fault == Verdict::fail ? Verdict::fail : Verdict::warn) << state;
  }
}

// An adapter below a GPU's switch without an active port is there, and another slot is no remedy.
TEST(Checks, AnAdapterWhosePortIsDownIsNotFarAway) {
  const auto said = [](const NodeChange& change) {
    Node node = test::healthy_node();
    change(node);
    std::string all;
    for (const Finding& finding : found("topo.nearest", node))
      all += fmt::format("{} {}: {}\n", name_of(finding.verdict), finding.evidence, finding.remedy);
    return all;
  };
  const NodeChange down = both(set("port/mlx5_0/1/state", "DOWN"), set("port/mlx5_1/1/state", "DOWN"));
  const std::string beside = fmt::format(
      "info no active adapter shares a PCIe bridge with 2 GPUs ({}, {}): no port of mlx5_0, mlx5_1 is active, and NCCL "
      "leaves GPUDirect RDMA off there: look at the ports of that adapter: see ib.state\n",
      test::gpu_address(0), test::gpu_address(1));
  EXPECT_EQ(said(down), beside);
  const std::string elsewhere = "sys/devices/pci0000:90/0000:90:01.0/0000:91:00.0";
  const std::string far = fmt::format(
      "info no active adapter shares a PCIe bridge with 1 GPU ({}): NCCL leaves GPUDirect RDMA off there: if there is "
      "no other slot, measure NCCL_NET_GDR_LEVEL=PHB and SYS\n",
      test::gpu_address(7));
  EXPECT_EQ(said(both(down, set("gpu/" + test::gpu_address(7) + "/path", elsewhere))), far + beside);
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

}  // namespace
}  // namespace harness::doctor
