// The part of an examination that a result keeps: findings that concern its sweep, and its cases' settings.
#include "doctor/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doctor/recorded_facts.h"
#include "node_fixture.h"

namespace harness::doctor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<Node> two_nodes(const std::string& lanes_of_second = "16") {
  std::vector<Node> nodes(2, test::healthy_node());
  nodes[1].host = "dgx02";
  nodes[1].facts.set("hca/mlx5_2/width", lanes_of_second);
  return nodes;
}

// "2: env.devices on dgx01: …", by case; of the nodes without a number.
std::vector<std::string> lines_of(const store::DoctorRecord& record) {
  std::vector<std::string> lines;
  for (const store::ResultFinding& row : record.findings) {
    const std::string of = row.is_of_nodes() ? "" : fmt::format("{}: ", row.case_index);
    lines.push_back(fmt::format("{}{} {} on {}: {}", of, row.verdict, row.check, row.where, row.evidence));
  }
  return lines;
}

TEST(Record, OfHealthyNodesHasTheirFactsAndNoFinding) {
  const std::vector<Node> nodes = two_nodes();
  const store::DoctorRecord record = record_of(nodes, {});
  EXPECT_THAT(lines_of(record), IsEmpty());
  EXPECT_EQ(failures_in_words(record), "");
  const RecordedFacts kept = read_facts(record.facts, "the record");
  ASSERT_EQ(kept.nodes.size(), 2u);
  EXPECT_EQ(kept.nodes[1].host, "dgx02");
  EXPECT_EQ(kept.nodes[1].facts.size(), nodes[1].facts.size());
}

TEST(Record, NamesFailuresWithTheirNodesAndWhatToDo) {
  const store::DoctorRecord record = record_of(two_nodes("8"), {});
  EXPECT_THAT(lines_of(record), ElementsAre("fail ib.pcie on dgx02: adapter mlx5_2 carries 400 Gb/s, its PCIe link 252",
                                            "fail pcie.width on dgx02: adapter mlx5_2 runs on 8 of 16 PCIe lanes"));
  EXPECT_EQ(record.findings[0].nodes, 1);
  EXPECT_THAT(failures_in_words(record), HasSubstr("runs on 8 of 16 PCIe lanes. What to do: look again under load"));
}

// Nobody could read them again; what they showed stays.
TEST(Record, FactsThatNoReaderTakesAreLeftOutAndTheFindingsKept) {
  std::vector<Node> nodes = two_nodes("8");
  nodes[0].facts.set("log/long", std::string(most_fact_bytes, 'x'));
  const store::DoctorRecord record = record_of(nodes, {});
  EXPECT_EQ(record.facts, "");
  EXPECT_THAT(lines_of(record), ::testing::SizeIs(2));
}

// A sweep on processors does not fail over a GPU, and none over the load of a moment, which every block watches.
TEST(Record, HasWhatConcernsTheSweep) {
  std::vector<Node> nodes = two_nodes("8");
  for (Node& node : nodes) {
    node.facts.set("cpu/load", "5.00 4.00 3.00 1/100 7");
    node.facts.set("cpu/steal", "0.2");
  }
  nodes[0].facts.set("nvml/" + test::gpu_address(1) + "/persistence", "false");
  SweepToJudge sweep;
  EXPECT_THAT(lines_of(record_of(nodes, sweep)), ::testing::SizeIs(3));  // two of the adapter, gpu.persistence
  sweep.uses_gpus = false;
  EXPECT_THAT(lines_of(record_of(nodes, sweep)), ::testing::SizeIs(2));
}

// Nor over the lanes of a GPU, or of the bridge that only GPUs hang on.
TEST(Record, ASweepOnProcessorsMeetsNoGpus) {
  std::vector<Node> nodes = two_nodes();
  nodes[0].facts.set("gpu/" + test::gpu_address(1) + "/width", "8");
  const std::vector<std::string> path = pci_path(nodes[0].facts, "gpu/" + test::gpu_address(0));
  nodes[0].facts.set("bridge/" + path.at(path.size() - 2) + "/width", "4");
  SweepToJudge sweep;
  EXPECT_THAT(lines_of(record_of(nodes, sweep)), ::testing::SizeIs(2));
  sweep.uses_gpus = false;
  EXPECT_THAT(lines_of(record_of(nodes, sweep)), IsEmpty());
  nodes[1].facts.set("driver/version", "525.1");  // which the others differ from
  EXPECT_THAT(lines_of(record_of(nodes, sweep)), IsEmpty());
  nodes[0].facts.set("unfinished", "NVML");
  EXPECT_THAT(not_healthy_in_words(record_of(nodes, sweep)), HasSubstr("warn node.answers on dgx01"));
  EXPECT_EQ(failures_in_words(record_of(nodes, sweep)), "");
}

TEST(Record, SharedGpusAreNoFailure) {
  std::vector<Node> nodes = two_nodes();
  for (int rank = 8; rank < 16; ++rank) {
    for (Node& node : nodes) node.ranks.push_back({rank, test::NodeTree::healthy_rank()});
  }
  EXPECT_THAT(lines_of(record_of(nodes, {})), ElementsAre("fail rank.gpus on all 2: 16 ranks and 8 GPUs"));
  EXPECT_THAT(lines_of(record_of(nodes, {true, true, {}})), IsEmpty());
}

// A setting for finding faults is an experiment when a case sets it; one that cannot have an effect is none.
TEST(Record, HoldsWhatACaseSetsAgainstTheNodes) {
  SweepToJudge sweep;
  sweep.cases = {{0, {}},
                 {2, {{"NCCL_P2P_DISABLE", "1"}}},
                 {3, {{"NCCL_IB_GID_INDEX", "3"}}},
                 {5, {{"NCCL_IB_HCA", "mlx4"}}},
                 {6, {{"NCCL_ALGO", "Tree"}, {"NCCL_COLLNET_ENABLE", "1"}}}};
  const store::DoctorRecord record = record_of(two_nodes(), sweep);
  EXPECT_THAT(
      lines_of(record),
      ElementsAre(HasSubstr("3: info env.without_effect on dgx01: NCCL_IB_GID_INDEX has no effect on InfiniBand"),
                  HasSubstr("5: fail env.devices on dgx01: NCCL_IB_HCA=mlx4 fits nothing here"),
                  HasSubstr("6: warn env.combinations on dgx01: NCCL_ALGO=Tree turns off what SHARP needs")));
  EXPECT_EQ(failures_in_words(record), "");  // the nodes are healthy
}

TEST(Record, SaysWhatTheBaselineSetsOnce) {
  const NameValues index{{"NCCL_IB_GID_INDEX", "3"}};
  SweepToJudge sweep;
  sweep.cases = {{0, index}, {1, index}, {2, {{"NCCL_IB_GID_INDEX", "3"}, {"NCCL_BUFFSIZE", "8388608"}}}};
  EXPECT_THAT(lines_of(record_of(two_nodes(), sweep)), ElementsAre(HasSubstr("0: info env.without_effect")));
  std::vector<Node> nodes = two_nodes();
  for (Node& node : nodes) {
    for (Rank& rank : node.ranks) rank.facts.set("env/NCCL_IB_GID_INDEX", "3");
  }
  EXPECT_THAT(lines_of(record_of(nodes, sweep)), ElementsAre(HasSubstr("info env.without_effect on all 2")));
}

}  // namespace
}  // namespace harness::doctor
