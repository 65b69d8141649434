// Names the nodes that differ from the majority, without a table of expected values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/text.h"
#include "doctor/check.h"
#include "doctor/facts.h"
#include "doctor/stage.h"
#include "node_fixture.h"

namespace harness::doctor {

namespace {

using ::testing::ElementsAre;

using Lines = std::vector<std::string>;

std::vector<Node> sixteen_nodes() {
  std::vector<Node> nodes;
  for (int i = 0; i < 16; ++i) nodes.push_back(test::healthy_node(fmt::format("node{}", i)));
  return nodes;
}

TEST(SixteenNodes, ThatAreEqualDoNotDiffer) {
  const Diagnosis all = diagnose(sixteen_nodes());
  EXPECT_EQ(all.nodes, 16u);
  EXPECT_EQ(all.ranks, 128u);
  EXPECT_EQ(all.gpus, 128u);
  EXPECT_EQ(all.count(Verdict::fail) + all.count(Verdict::warn), 0u);
}

TEST(SixteenNodes, ALinkAndADriverAreInTheFirstLines) {
  std::vector<Node> nodes = sixteen_nodes();
  nodes[11].facts.set("gpu/0000:43:00.0/width", "8");
  nodes[3].facts.set("driver/version", "565.57.01");
  const Diagnosis all = diagnose(nodes);
  EXPECT_EQ(exit_code(all, false), 2);
  ASSERT_GE(all.lines.size(), 3u);
  EXPECT_EQ(all.lines[0].check, "pcie.width");
  EXPECT_EQ(all.lines[0].nodes, Lines{"node11"});
  EXPECT_EQ(all.lines[0].finding.evidence, "GPU 0000:43:00.0 runs on 8 of 16 PCIe lanes");
  EXPECT_EQ(all.lines[1].check, "same.driver");
  EXPECT_EQ(all.lines[1].nodes, Lines{"node3"});
  EXPECT_EQ(all.lines[1].finding.evidence, "version of NVIDIA's driver: 565.57.01; 15 of 16 nodes: 570.86.15");
  EXPECT_GT(all.lines[2].finding.verdict, Verdict::warn);
}

TEST(SixteenNodes, WhatACheckHasSaidOfANodeIsNotSaidTwice) {
  std::vector<Node> nodes = sixteen_nodes();
  nodes[5].facts.set("port/mlx5_2/1/rate", "200 Gb/sec (4X HDR)");
  nodes[9].facts.set("port/mlx5_2/1/state", "DOWN");
  Lines bad;
  for (const Line& line : diagnose(nodes).lines) {
    if (line.finding.verdict <= Verdict::warn) bad.push_back(line.nodes.at(0) + " " + line.check);
  }
  EXPECT_EQ(bad, (Lines{"node9 ib.state", "node5 ib.rate"}));
}

TEST(SixteenNodes, EqualFindingsAreOneLineWithTheirNodes) {
  std::vector<Node> nodes = sixteen_nodes();
  for (const int i : {2, 3, 8}) nodes[i].facts.set("memory/numa_balancing", "1");
  const Diagnosis all = diagnose(nodes);
  EXPECT_EQ(all.lines.front().check, "mem.numa_balancing");
  EXPECT_EQ(all.lines.front().nodes, (Lines{"node2", "node3", "node8"}));
  EXPECT_EQ(all.count(Verdict::warn), 1u);
}

// Each rank examines its own folder. Ranks whose folders name the same host are one node.
TEST(Examine, AFolderForEachRank) {
  const test::NodeTree first("a"), second("b");
  const test::TemporaryFolder folder;
  for (int rank = 0; rank < 4; ++rank)
    std::filesystem::create_directory_symlink(rank < 2 ? first.path() : second.path(),
                                              folder / fmt::format("rank{}", rank));
  test::AnsweringJob job(2, 2);
  job.silent = 3;
  const std::vector<Node> nodes = examine(job, {folder / "rank{rank}"});
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[1].host, "b");
  EXPECT_EQ(nodes[1].facts.text("os/kernel"), "6.8.0-45-generic");
  EXPECT_EQ(diagnose(nodes).lines.front().finding.evidence,
            "rank 3 gave no answer: nothing is known of what it would have told");
}

// A sweep on CPUs does not load the driver.
TEST(Examine, AsksNvmlOnlyIfItIsTo) {
  test::AnsweringJob job(1, 1);
  EXPECT_EQ(examine(job, {"/", 20, false}).at(0).facts["nvml"].access, machine::Access::absent);
  EXPECT_NE(examine(job, {"/", 20, true}).at(0).facts["nvml"].access, machine::Access::absent);
}

// Without {rank}, the lowest rank of a node reports the node's facts, and every rank reports its own.
TEST(Examine, OneRankOfANodeTellsItsFacts) {
  test::Dgx tree;
  test::AnsweringJob job(2, 4);
  const std::vector<Node> nodes = examine(job, {tree.path()});
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].ranks.size(), 4u);
  EXPECT_EQ(nodes[1].ranks.at(3).rank, 7);
  EXPECT_EQ(nodes[1].ranks.at(3).facts.text("bound/cpus"), "0-7");
  EXPECT_EQ(nodes[1].facts.under("gpu").size(), 8u);
}

TEST(Examine, AnAnswerToRubbishIsNone) {
  EXPECT_EQ(answer(0, "rubbish"), "");
}

Node with(const std::string& host, const std::string& name, const std::string& value) {
  Node node{host, {{0, {}}}, {}};
  if (!value.empty()) node.facts.set(name, value);
  return node;
}

Lines differing(const std::vector<Node>& nodes, const std::string& check) {
  Lines lines;
  for (const StageFinding& difference : differences(nodes)) {
    if (difference.check == check) lines.push_back(difference.host + ": " + difference.finding.evidence);
  }
  return lines;
}

TEST(Consensus, WithoutAMajorityEveryNodeIsNamed) {
  EXPECT_EQ(
      differing({with("a", "os/kernel", "5.15"), with("b", "os/kernel", "6.8")}, "same.kernel"),
      (Lines{"a: version of the kernel: 5.15; the nodes differ", "b: version of the kernel: 6.8; the nodes differ"}));
}

TEST(Consensus, WhoCouldNotReadAFactHasNoPartInIt) {
  EXPECT_EQ(differing({with("a", "os/kernel", "6.8"), with("b", "os/kernel", ""), with("c", "os/kernel", "6.8")},
                      "same.kernel"),
            Lines{});
}

TEST(Stages, TheirNamesAreReadAndMistakesNamed) {
  EXPECT_EQ(parse_stages("load, static"), (std::vector{Stage::facts, Stage::load}));
  EXPECT_EQ(parse_stages(all_stages).size(), 3u);
  try {
    parse_stages("static,ncll");
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(),
                 "--stages: found 'ncll'; allowed: static, nccl, load, separated by commas; did you mean nccl?");
  }
}

TEST(Stages, WhatTheySayTakesItsPlaceAmongTheRest) {
  Diagnosis diagnosis;
  diagnosis.lines = {{"ib.rate", {Verdict::fail, "slow", "replace"}, "", {"node1"}},
                     {"cpu.load", {Verdict::warn, "busy", "wait"}, "", {"node1"}}};
  const Finding sockets{Verdict::fail, "sockets", "look"};
  add(diagnosis, {{"stage.nccl", {Verdict::info, "16", ""}, ""},
                  {"nccl.network", sockets, "node1"},
                  {"nccl.network", sockets, "node2"}});
  std::vector<std::string> order;
  for (const Line& line : diagnosis.lines) order.push_back(line.check);
  EXPECT_THAT(order, ElementsAre("ib.rate", "nccl.network", "cpu.load", "stage.nccl"));
  EXPECT_THAT(diagnosis.lines[1].nodes, ElementsAre("node1", "node2"));
  EXPECT_THAT(diagnosis.lines[3].nodes, ElementsAre());
  EXPECT_EQ(exit_code(diagnosis, false), 2);
}

}  // namespace

}  // namespace harness::doctor
