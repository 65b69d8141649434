// The facts in a result file: judged later as they were then.
#include "doctor/recorded_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doctor/diagnosis.h"
#include "node_fixture.h"
#include "support/errors.h"

namespace harness::doctor {
namespace {

using ::testing::HasSubstr;

// Two nodes with faults of many kinds: readings that are not there, cannot be read, or differ.
const std::vector<Node>& faulty_nodes() {
  static const std::vector<Node> nodes = [] {
    std::vector<Node> both;
    for (const std::string host : {"dgx01", "dgx02.site.example"}) {
      test::NodeTree tree(host);
      test::add_dgx(tree, host == "dgx01" ? "InfiniBand" : "Ethernet");
      tree.write("sys/class/infiniband/mlx5_5/ports/1/rate", "200 Gb/sec (4X HDR)");
      tree.write("etc/nccl.conf", "NCCL_SOCKET_IFNAME=enx00e04c680001\nNCCL_BUFFSIZE=8388608");
      tree.write("dev/kmsg", "3,99,5,-;NVRM: Xid (PCI:0000:35:00): 79, pid=1, GPU has fallen off the bus.");
      tree.write("sys/class/net/enx00e04c680001/operstate", "up");
      tree.make_unreadable("sys/class/infiniband/mlx5_3/ports/1/lid");
      machine::GpuReport gpus = test::healthy_gpus();
      gpus.gpus[3].power_limit_w = 500;
      Node node = tree.node(8, &gpus);
      for (Rank& rank : node.ranks) {
        rank.facts.set("bound/capabilities", "000001ffffffffff");
        rank.facts.set("env/NCCL_IB_HCA", "=mlx5_0:1,mlx5_1:1");
        rank.facts.set("env/NCCL_TOPO_FILE", "/home/alice/topo-dgx01.xml");
        rank.facts.set("env/UCX_NET_DEVICES", "mlx5_0:1 dgx02 0x506b4b0300c3a4f2 fe80::1 aa:bb:cc:dd:ee:ff");
        rank.facts.set("env/SLURM_JOB_NODELIST", "dgx[01-02]");
        rank.facts.set("env/OMPI_MCA_btl_tcp_if_include", "10.1.0.0/16");
        rank.facts.set("env/OMPI_MCA_orte_hnp_uri", "1.0;tcp://10.1.2.3:4711");
      }
      node.ranks[7].facts.set("env/NCCL_DEBUG", "INFO");
      node.facts.set("library/libnccl.so.2", "/home/alice/conda/lib/libnccl.so.2.27.3");
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
  EXPECT_GT(before.size(), 60u);
  ASSERT_EQ(read.nodes.size(), 2u);
  EXPECT_EQ(read.nodes[1].ranks[7].rank, 7);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read.nodes[i].facts.size(), faulty_nodes()[i].facts.size());
    for (const auto& [name, reading] : faulty_nodes()[i].facts) EXPECT_EQ(read.nodes[i].facts[name], reading) << name;
  }
}

TEST(RecordedFacts, NumbersThatAreNoneAreJudgedAllTheSame) {
  Node node = faulty_nodes().front();
  node.facts.set("log/xid/abc", "a file from elsewhere");
  node.facts.set("log/xid/99999999999", "the same");
  EXPECT_NO_THROW(static_cast<void>(diagnose({node})));
}

// A fact that all nodes share stands once: a cluster is not as many times larger as it has nodes.
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
  EXPECT_THAT(error(""), HasSubstr("no JSON"));
  EXPECT_THAT(error("\xff\xfe"), HasSubstr("no JSON"));
  EXPECT_THAT(error(good.substr(0, good.size() / 2)), HasSubstr("no JSON"));
  EXPECT_THAT(error("[]"), HasSubstr("schema"));
  EXPECT_THAT(error(R"({"schema": "other"})"), HasSubstr("schema"));
  EXPECT_THAT(error(R"({"schema": "harness-doctor", "schema_version": 2})"), HasSubstr("version 2"));
  EXPECT_THAT(error(R"({"schema": "harness-doctor", "schema_version": "1"})"), HasSubstr("no whole number"));
  EXPECT_THAT(error(R"({"schema": "harness-doctor", "schema_version": 1})"), HasSubstr("missing"));
  EXPECT_THAT(error(std::string(100000, '[')), HasSubstr("nested too deep"));
  const std::string head = R"({"schema": "harness-doctor", "schema_version": 1, "created": "", "tool_version": "",)"
                           R"("facts_of_ranks": {}, )";
  EXPECT_THAT(error(head + R"("facts": {"a": 5}, "nodes": []})"), HasSubstr("missing"));
  EXPECT_THAT(error(head + R"("facts": {}, "nodes": []})"), HasSubstr("no node"));
  EXPECT_THAT(
      error(head + R"("facts": {}, "nodes": [{"host": "a", "facts": {}, "ranks": [{"rank": -1, "facts": {}}]}]})"),
      HasSubstr("a rank has the number -1"));
  EXPECT_THAT(error(std::string(most_fact_bytes + 1, ' ')), HasSubstr("larger than 64 MiB"));
}

// A few facts that many nodes share would become gigabytes.
TEST(RecordedFacts, ASmallFileDoesNotBecomeALargeOne) {
  std::string text = R"({"schema": "harness-doctor", "schema_version": 1, "created": "", "tool_version": "",)"
                     R"("facts_of_ranks": {}, "facts": {)";
  for (int i = 0; i < 3000; ++i) text += fmt::format("{}\"{}\": \"\"", i == 0 ? "" : ",", i);
  text += R"(}, "nodes": [)";
  for (int i = 0; i < 3000; ++i)
    text += fmt::format("{}{{\"host\": \"{}\", \"facts\": {{}}, \"ranks\": []}}", i == 0 ? "" : ",", i);
  EXPECT_THAT(test::error_of([&] { read_facts(text + "]}", "x.json"); }), HasSubstr("more than 8000000 facts"));
}

// Texts of many values cost no more than their length: with the square of it, the larger one would take hours.
TEST(RecordedFacts, ALargeTextIsReadInLinearTime) {
  std::string text = "[{}";
  while (text.size() < (8u << 20)) text += ",{}";
  EXPECT_THAT(test::error_of([&] { read_facts(text + "]", "x.json"); }), HasSubstr("schema"));
}

TEST(RecordedFacts, ABracketInATextIsNoNesting) {
  Node node = faulty_nodes().front();
  node.facts.set("os/cmdline", "\\\"[[[[[[[[[[{{{{{{{{{\\");
  const RecordedFacts read = read_facts(write_facts({"", "", {node}}), "x.json");
  EXPECT_EQ(read.nodes.at(0).facts.text("os/cmdline"), node.facts.text("os/cmdline"));
}

// A reading that is no finite number is no number, whoever computes with it.
TEST(RecordedFacts, InfinityIsJudgedLikeAnyOtherWord) {
  Node node = faulty_nodes().front();
  for (const char* word : {"inf", "nan", "infinity", "1e999", "-inf"}) {
    std::vector<Node> nodes(2, node);
    for (const auto& fact : node.facts) nodes[0].facts.set(fact.first, word);
    nodes[1].host = "other";
    EXPECT_FALSE(nodes[0].facts.number("memory/total_kb")) << word;
    EXPECT_NO_THROW(static_cast<void>(diagnose(nodes))) << word;
  }
}

// Whatever a file holds that is well-formed is judged, and nothing crashes.
TEST(RecordedFacts, NonsenseIsJudged) {
  const RecordedFacts nonsense = read_facts(
      R"({"schema": "harness-doctor", "schema_version": 1, "created": "\u0000", "tool_version": "", 
          "facts_of_ranks": {"env/NCCL_ALGO": "\u0000\uffff", "env/": ""}, "facts": {"": "", "port///rate": "x",
          "gpu/1/width": "-9e999", "port/a/b/state": "ACTIVE", "os/cmdline": {"unreadable": ""}},
          "nodes": [{"host": "", "facts": {}, "ranks": []}, {"host": "", "facts": {"gpu/2/device": "?"},
          "ranks": [{"rank": 5, "facts": {}}, {"rank": 5, "facts": {}}]}]})",
      "x.json");
  EXPECT_GT(diagnose(nonsense.nodes).lines.size(), 40u);
}

}  // namespace
}  // namespace harness::doctor
