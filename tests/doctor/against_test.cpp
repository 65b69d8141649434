// Changes since an earlier look.
#include "doctor/recorded_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node_fixture.h"

namespace harness::doctor {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Node healthy(const std::string& host) {
  Node node = test::healthy_node();
  node.host = host;
  return node;
}

RecordedFacts earlier() {
  return {"2026-01-02T03:04:05Z", "0.1.0", {healthy("n1"), healthy("n2"), healthy("n3")}};
}

// The present look, with its names.
RecordedFacts seen(const std::vector<Node>& nodes) {
  return {"2026-02-03T04:05:06Z", "0.1.0", nodes};
}

std::vector<std::string> said_of(const Changes& changes) {
  std::vector<std::string> lines;
  for (const Line& line : changes.new_findings)
    lines.push_back(fmt::format("new {} on {}", line.check, fmt::join(line.nodes, ",")));
  for (const Change& change : changes.facts)
    lines.push_back(
        fmt::format("{}: {} -> {} on {}", change.what, change.was, change.now, fmt::join(change.nodes, ",")));
  return lines;
}

TEST(Against, NothingHasChangedWhereOnlyTheMomentHas) {
  std::vector<Node> now = earlier().nodes;
  for (Node& node : now) {
    node.facts.set("cpu/load", "4.1 3 2 1/2 3");
    node.facts.set("memory/swap_free_kb", "7");
    node.facts.set("gpu/" + test::gpu_address(0) + "/speed", "2.5 GT/s PCIe");
    node.facts.set("hca/mlx5_0/aer_correctable", "0");
  }
  const Changes changes = changes_since(earlier(), seen(now));
  EXPECT_THAT(said_of(changes), IsEmpty());
  EXPECT_THAT(changes.gone, IsEmpty());
  EXPECT_THAT(changes.added, IsEmpty());
  EXPECT_EQ(changes.since, "2026-01-02T03:04:05Z");
}

TEST(Against, NamesFactsByNodeAndWhatIsWrongSince) {
  std::vector<Node> now = earlier().nodes;
  for (Node& node : now) {
    node.facts.set("driver/version", "575.1");
    node.facts.set("fabric_manager/version", "575.1");
  }
  now[1].facts.set("hca/mlx5_2/width", "8");
  now[2].facts.set("port/mlx5_4/1/counter/link_downed", "3");
  now[2].facts.set_unreadable("cpu/governor", "permission denied");
  now[2].ranks[0].facts.set("env/NCCL_ALGO", "Ring");
  for (Rank& rank : now[0].ranks) rank.facts.set("limit/nofile", "1024");
  const Changes changes = changes_since(earlier(), seen(now));
  EXPECT_THAT(
      said_of(changes),
      ElementsAre("new ib.pcie on n2", "new pcie.width on n2", "new rank.nofile on n1", "new env.debugging on n3",
                  "new env.ranks on n3", "driver/version: 570.86.15 -> 575.1 on n1,n2,n3",
                  "fabric_manager/version: 570.86.15 -> 575.1 on n1,n2,n3", "rank: limit/nofile: 1048576 -> 1024 on n1",
                  "hca/mlx5_2/width: 16 -> 8 on n2",
                  "cpu/governor: performance -> cannot be read: permission denied on n3",
                  "port/mlx5_4/1/counter/link_downed: 0 -> 3 on n3", "rank: env/NCCL_ALGO: (none) -> Ring on n3"));
}

// After another start of a node its counters are small again.
TEST(Against, ACounterThatFellIsNoChange) {
  RecordedFacts before = earlier();
  before.nodes[0].facts.set("port/mlx5_4/1/counter/link_downed", "3");
  EXPECT_THAT(said_of(changes_since(before, earlier())), IsEmpty());
}

TEST(Against, NodesThatCameAndWent) {
  std::vector<Node> now = earlier().nodes;
  now[0].host = "n9";
  now[2].ranks.pop_back();
  const Changes changes = changes_since(earlier(), seen(now));
  EXPECT_THAT(changes.gone, ElementsAre("n1"));
  EXPECT_THAT(changes.added, ElementsAre("n9"));
  EXPECT_EQ(changes.facts.at(0).what, "ranks");
}

}  // namespace
}  // namespace harness::doctor
