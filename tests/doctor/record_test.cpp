// The part of an examination that a result keeps: findings that concern its sweep, and the settings of its cases.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doctor/check.h"
#include "doctor/record.h"
#include "node_fixture.h"
#include "support/errors.h"

namespace harness::doctor {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<Node> two_nodes(const std::string& lanes_of_second = "16") {
  std::vector<Node> nodes{test::healthy_node(), test::healthy_node("dgx02")};
  nodes[1].facts.set("hca/mlx5_2/width", lanes_of_second);
  if (lanes_of_second == "8") nodes[1].facts.set("hca/mlx5_2/link_gbps", "252");
  return nodes;
}

// "2: env.devices on dgx01: …", by case; without a number for findings on nodes.
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

// Facts that are too large to be read again are dropped; the findings stay.
TEST(Record, FactsThatNoReaderTakesAreLeftOutAndTheFindingsKept) {
  std::vector<Node> nodes = two_nodes("8");
  nodes[0].facts.set("log/long", std::string(most_fact_bytes, 'x'));
  const store::DoctorRecord record = record_of(nodes, {});
  EXPECT_EQ(record.facts, "");
  EXPECT_THAT(lines_of(record), ::testing::SizeIs(2));
}

// A sweep on CPUs ignores findings on GPUs. No sweep records momentary load, which every block measures itself.
TEST(Record, HasWhatConcernsTheSweep) {
  std::vector<Node> nodes = two_nodes("8");
  for (Node& node : nodes) node.facts.set("cpu/load", "5.00");
  nodes[0].facts.set("nvml/" + test::gpu_address(1) + "/persistence", "false");
  SweepToJudge sweep;
  EXPECT_THAT(lines_of(record_of(nodes, sweep)), ::testing::SizeIs(3));  // two of the adapter, gpu.persistence
  sweep.uses_gpus = false;
  EXPECT_THAT(lines_of(record_of(nodes, sweep)), ::testing::SizeIs(2));
}

// A sweep on CPUs also ignores the PCIe width of a GPU, or the errors of a bridge with only GPUs below it.
TEST(Record, ASweepOnProcessorsMeetsNoGpus) {
  std::vector<Node> nodes = two_nodes();
  nodes[0].facts.set("gpu/" + test::gpu_address(1) + "/width", "8");
  const std::vector<std::string> path = pci_path(nodes[0].facts, "gpu/" + test::gpu_address(0));
  nodes[0].facts.set("bridge/" + path.at(path.size() - 2) + "/aer_fatal", "4");
  SweepToJudge sweep;
  EXPECT_THAT(lines_of(record_of(nodes, sweep)), ::testing::SizeIs(2));
  sweep.uses_gpus = false;
  EXPECT_THAT(lines_of(record_of(nodes, sweep)), IsEmpty());
  nodes[1].facts.set("driver/version", "525.1");  // the other nodes have another version
  EXPECT_THAT(lines_of(record_of(nodes, sweep)), IsEmpty());
  nodes[0].facts.set("unfinished", "NVML");
  EXPECT_THAT(failures_in_words(record_of(nodes, sweep), true), HasSubstr("warn node.answers on dgx01"));
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

// A debugging setting in a case is an experiment. A setting without effect is reported.
TEST(Record, HoldsWhatACaseSetsAgainstTheNodes) {
  SweepToJudge sweep;
  sweep.cases = {
      {0, {}}, {2, {{"NCCL_P2P_DISABLE", "1"}}}, {3, {{"NCCL_IB_GID_INDEX", "3"}}}, {5, {{"NCCL_IB_HCA", "mlx4"}}}};
  const store::DoctorRecord record = record_of(two_nodes(), sweep);
  EXPECT_THAT(
      lines_of(record),
      ElementsAre(HasSubstr("3: info env.without_effect on dgx01: NCCL_IB_GID_INDEX has no effect on InfiniBand"),
                  HasSubstr("5: fail env.devices on dgx01: NCCL_IB_HCA=mlx4 fits nothing here")));
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

// Two nodes with many kinds of faults: facts that are absent, unreadable, or different.
const std::vector<Node>& faulty_nodes() {
  static const std::vector<Node> nodes = [] {
    std::vector<Node> both;
    for (const std::string host : {"dgx01", "dgx02.site.example"}) {
      test::Dgx tree(host, host == "dgx01" ? "InfiniBand" : "Ethernet");
      tree.write("sys/class/infiniband/mlx5_5/ports/1/rate", "200 Gb/sec (4X HDR)");
      tree.write("etc/nccl.conf", "NCCL_SOCKET_IFNAME=enx00e04c680001\nNCCL_BUFFSIZE=8388608");
      tree.write("dev/kmsg", "3,99,5,-;NVRM: Xid (PCI:0000:35:00): 79, pid=1, GPU has fallen off the bus.");
      tree.make_unreadable("sys/class/infiniband/mlx5_3/ports/1/lid");
      Node node = tree.node(8, test::healthy_gpus());
      for (Rank& rank : node.ranks) rank.facts.set("env/NCCL_IB_HCA", "=mlx5_0:1,mlx5_1:1");
      node.ranks[7].facts.set("env/NCCL_DEBUG", "INFO");
      node.facts.set("os/cmdline", "\\\"[[[[[[[[[[{{{{{{{{{\\");
      both.push_back(std::move(node));
    }
    return both;
  }();
  return nodes;
}

std::vector<std::string> all_of(const Diagnosis& diagnosis) {
  std::vector<std::string> lines;
  for (const Line& line : diagnosis.lines) {
    lines.push_back(fmt::format("{} {}: {} | {} | {}", name_of(line.finding.verdict), line.check, line.finding.evidence,
                                line.finding.remedy, fmt::join(line.nodes, ",")));
  }
  return lines;
}

TEST(RecordedFacts, IsJudgedAsTheNodesWere) {
  const RecordedFacts written{"2026-01-02T03:04:05Z", "0.1.0", faulty_nodes()};
  const RecordedFacts read = read_facts(write_facts(written), "a.json");
  EXPECT_EQ(read.created, written.created);
  EXPECT_EQ(read.tool_version, written.tool_version);
  const auto before = all_of(diagnose(faulty_nodes()));
  EXPECT_EQ(all_of(diagnose(read.nodes)), before);
  EXPECT_GT(before.size(), 50u);
  ASSERT_EQ(read.nodes.size(), 2u);
  EXPECT_EQ(read.nodes[1].ranks[7].rank, 7);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read.nodes[i].facts.size(), faulty_nodes()[i].facts.size());
    for (const auto& [name, reading] : faulty_nodes()[i].facts) EXPECT_EQ(read.nodes[i].facts[name], reading) << name;
  }
}

// A fact shared by all nodes is stored once: the record does not grow in proportion to the nodes.
TEST(RecordedFacts, GrowsByWhatDiffers) {
  const Node one = faulty_nodes()[0];
  std::vector<Node> many(64, one);
  for (std::size_t i = 0; i < many.size(); ++i) many[i].host = fmt::format("n{}", i);
  const std::size_t single = write_facts({"", "", {one}}).size();
  EXPECT_LT(write_facts({"", "", many}).size(), 3 * single);
}

TEST(RecordedFacts, AHostileOneIsOneLine) {
  const std::string good = write_facts({"", "", {faulty_nodes()[0]}});
  const auto error = [](const std::string& text) {
    std::string said = test::error_of([&] { read_facts(text, "x.json"); });
    EXPECT_THAT(said, HasSubstr("x.json is no record of doctor's that this program can read: "));
    EXPECT_EQ(said.find('\n'), std::string::npos);
    return said;
  };
  for (const std::string& text : {std::string(), std::string("\xff\xfe"), good.substr(0, good.size() / 2)})
    EXPECT_THAT(error(text), HasSubstr("parse error"));
  error("[]");
  error(std::string(100000, '['));
  EXPECT_THAT(error(R"({"schema": "other"})"), HasSubstr("schema"));
  EXPECT_THAT(error(R"({"schema": "harness-doctor", "schema_version": 2})"), HasSubstr("version 2"));
  error(R"({"schema": "harness-doctor", "schema_version": "1"})");
  EXPECT_THAT(error(R"({"schema": "harness-doctor", "schema_version": 1})"), HasSubstr("created"));
  const std::string head = R"({"schema": "harness-doctor", "schema_version": 1, "created": "", "tool_version": "",)"
                           R"("facts_of_ranks": {}, )";
  error(head + R"("facts": {"a": 5}, "nodes": []})");
  EXPECT_THAT(error(head + R"("facts": {}, "nodes": []})"), HasSubstr("no node"));
  error(head + R"("facts": {}, "nodes": [{"host": "a", "facts": {}, "ranks": [{"rank": "x", "facts": {}}]}]})");
  EXPECT_THAT(error(std::string(most_fact_bytes + 1, ' ')), HasSubstr("larger than 64 MiB"));
}

// A few facts shared by many nodes would expand to gigabytes.
TEST(RecordedFacts, ASmallFileDoesNotBecomeALargeOne) {
  std::string text = R"({"schema": "harness-doctor", "schema_version": 1, "created": "", "tool_version": "",)"
                     R"("facts_of_ranks": {}, "facts": {)";
  for (int i = 0; i < 3000; ++i) text += fmt::format("{}\"{}\": \"\"", i == 0 ? "" : ",", i);
  text += R"(}, "nodes": [)";
  for (int i = 0; i < 3000; ++i)
    text += fmt::format("{}{{\"host\": \"{}\", \"facts\": {{}}, \"ranks\": []}}", i == 0 ? "" : ",", i);
  EXPECT_THAT(test::error_of([&] { read_facts(text + "]}", "x.json"); }), HasSubstr("more than 8000000 facts"));
}

RecordedFacts earlier() {
  using test::healthy_node;
  return {"2026-01-02T03:04:05Z", "0.1.0", {healthy_node("n1"), healthy_node("n2"), healthy_node("n3")}};
}

// Returns the present facts, with node names.
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
    node.facts.set("cpu/load", "4.1");
    node.facts.set("memory/swapped_gib", "0.1");
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
  for (Node& node : now) node.facts.set("driver/version", "575.1");
  now[1].facts.set("hca/mlx5_2/width", "8");
  now[2].facts.set("port/mlx5_4/1/counter/link_downed", "3");
  now[2].facts.set_unreadable("cpu/governor", "permission denied");
  now[2].ranks[0].facts.set("env/NCCL_ALGO", "Ring");
  for (Rank& rank : now[0].ranks) rank.facts.set("limit/nofile", "1024");
  const Changes changes = changes_since(earlier(), seen(now));
  EXPECT_THAT(
      said_of(changes),
      ElementsAre("new pcie.width on n2", "new rank.nofile on n1", "new env.debugging on n3", "new same.settings on n3",
                  "driver/version: 570.86.15 -> 575.1 on n1,n2,n3", "rank: limit/nofile: 1048576 -> 1024 on n1",
                  "hca/mlx5_2/width: 16 -> 8 on n2",
                  "cpu/governor: performance -> cannot be read: permission denied on n3",
                  "port/mlx5_4/1/counter/link_downed: 0 -> 3 on n3", "rank: env/NCCL_ALGO: (none) -> Ring on n3"));
}

// Counters start at zero again after a reboot.
TEST(Against, ACounterThatFellIsNoChange) {
  RecordedFacts before = earlier();
  before.nodes[0].facts.set("port/mlx5_4/1/counter/link_downed", "3");
  std::vector<Node> now = earlier().nodes;
  for (const char* counter : {"nvlink_recoveries", "nvlink_crc_errors"}) {
    const std::string name = fmt::format("nvml/{}/{}", test::gpu_address(0), counter);
    before.nodes[0].facts.set(name, "5");
    now[0].facts.set(name, "0");
  }
  EXPECT_THAT(said_of(changes_since(before, seen(now))), IsEmpty());
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
