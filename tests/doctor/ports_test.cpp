// Ports of adapters that are not active: lost, spare, or not known.
#include <gtest/gtest.h>

#include "base/text.h"
#include "check_rows.h"
#include "doctor/check.h"

namespace harness::doctor {
namespace {

using namespace check_rows;

// How many of eight equal ports are down, for each number. Half of them may be spare.
TEST(Checks, APortThatIsDownBesideItsEqualsIsMissed) {
  for (std::size_t down = 0; down <= 8; ++down) {
    Node node = test::healthy_node();
    for (std::size_t i = 0; i < down; ++i) {
      node.facts.set(fmt::format("port/mlx5_{}/1/state", i), "DOWN");
      node.facts.set(fmt::format("port/mlx5_{}/1/phys_state", i), "Polling");
    }
    const auto findings = found("ib.state", node);
    const bool may_be_spare = down >= 4 && down < 8;
    EXPECT_EQ(worst(findings), down == 0 || may_be_spare ? Verdict::pass : Verdict::warn) << down;
    if (down == 0 || down >= 4) continue;
    EXPECT_EQ(findings.size(), down);
    EXPECT_EQ(findings.front().evidence,
              fmt::format("port mlx5_0:1 is DOWN (Polling); {} of 8 ports of equal adapters are active", 8 - down));
  }
}

// No port of a node is active, in each state that a port can have, and in none that it can.
TEST(Checks, ANodeWithAdaptersNeedsAnActivePort) {
  for (const char* state : {"DOWN", "INIT", "ARMED", "NOP", "", "garbage", "7"}) {
    const bool is_known = std::string(state).size() > 2 && std::string(state) != "garbage";
    Node node = test::healthy_node();
    for (int i = 0; i < 8; ++i) node.facts.set(fmt::format("port/mlx5_{}/1/state", i), state);
    EXPECT_EQ(worst(found("ib.state", node)), is_known ? Verdict::warn : Verdict::unknown) << state;
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
  for (const auto& fact : test::healthy_node().facts) {
    if (fact.first.starts_with("gpu/" + test::gpu_address(7))) unset(fact.first)(fewer_gpus);
  }
  EXPECT_EQ(said(fewer_gpus, {fewer_gpus}).substr(0, 4), "pass");  // one for each GPU is up
  Node other_kind = node;
  set("hca/mlx5_3/board", "MT_0000000359")(other_kind);
  EXPECT_EQ(said(other_kind, {other_kind}).substr(0, 4), "pass");
}

}  // namespace
}  // namespace harness::doctor
