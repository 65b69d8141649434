// NCCL's picture of a node: files in the form of NCCL's own (graph/xml.cc), written here.
#include "doctor/nccl_stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "bench_job.h"
#include "doctor/nccl_stage.h"

namespace harness::doctor {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using Lines = std::vector<std::string>;

// A switch for each pair, with a GPU and an adapter below it.
struct Pair {
  int gpu_direct = 1, lanes = 16;
  bool apart = false;  // the adapter hangs on the processor
};
std::string topology_of(const std::vector<Pair>& pairs) {
  std::string text = "<system version=\"1\">\n  <cpu numaid=\"0\" affinity=\"ffff\" arch=\"x86_64\">\n";
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const Pair& pair = pairs[i];
    const std::string gpu = fmt::format(
        "<pci busid=\"0000:{}8:00.0\" class=\"0x030200\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">"
        "<gpu dev=\"{}\" sm=\"90\" rank=\"{}\" gdr=\"{}\"><nvlink target=\"0000:07:00.0\" count=\"5\"/></gpu></pci>\n",
        i, i, i, pair.gpu_direct);
    const std::string net = fmt::format(
        "<pci busid=\"0000:{}9:00.0\" class=\"0x020700\" link_speed=\"32.0 GT/s PCIe\n\" link_width=\"{}\">"
        "<nic><net name=\"mlx5_{}\" dev=\"{}\" speed=\"400000\" port=\"1\" gdr=\"1\" coll=\"1\"/></nic></pci>\n",
        i, pair.lanes, i, i);
    text += fmt::format(
        "<pci busid=\"0000:{}6:00.0\" class=\"0x060400\" link_speed=\"32.0 GT/s PCIe\" "
        "link_width=\"16\">\n{}{}</pci>\n",
        i, gpu, pair.apart ? "" : net);
    if (pair.apart) text += net;
  }
  return text + "  </cpu>\n</system>\n";
}

Lines said_of(const std::string& text) {
  Findings found;
  judge_topology(parse_topology(text), found);
  Lines lines;
  for (const Finding& finding : found.list())
    lines.push_back(fmt::format("{}: {}", name_of(finding.verdict), finding.evidence));
  return lines;
}

TEST(NcclTopology, IsReadWithItsPaths) {
  const NcclTopology seen = parse_topology(topology_of({{}, {}}));
  ASSERT_EQ(seen.gpus.size(), 2u);
  ASSERT_EQ(seen.adapters.size(), 2u);
  EXPECT_EQ(seen.gpus[1].name, "0000:18:00.0");
  EXPECT_EQ(seen.adapters[1].name, "mlx5_1");
  EXPECT_TRUE(seen.gpus[1].gpu_direct);
  EXPECT_EQ(seen.adapters[1].bits_per_s, 400e9);
  ASSERT_EQ(seen.adapters[1].path.size(), 2u);
  EXPECT_EQ(seen.adapters[1].path[0].address, "0000:16:00.0");
  EXPECT_NEAR(seen.adapters[1].path[1].bits_per_s, 504e9, 1e9);
}

TEST(NcclTopology, ASoundOnePasses) {
  EXPECT_EQ(said_of(topology_of({{}, {}, {}})), Lines{"pass: 3 GPUs and 3 adapters"});
}

TEST(NcclTopology, NamesWhatIsFarOrNarrow) {
  EXPECT_EQ(said_of(topology_of({{}, {1, 16, true}})),
            Lines{"warn: NCCL finds an adapter below a switch with 1 of 2 GPUs, not with 0000:18:00.0"});
  EXPECT_EQ(said_of(topology_of({{}, {0, 16, false}})),
            Lines{"warn: NCCL takes these GPUs to have no GPUDirect RDMA: 0000:18:00.0"});
  EXPECT_EQ(said_of(topology_of({{1, 8, false}, {}})),
            Lines{"warn: PCIe links carry less than the adapters' ports, as NCCL sees them: mlx5_0 (400 Gb/s) by "
                  "0000:09:00.0 (252)"});
  EXPECT_EQ(said_of(topology_of({{1, 16, true}})), Lines{"info: NCCL finds no adapter below a switch with any GPU"});
}

// A node of pairs, each below a bridge of its own with so many lanes at so many GT/s: as clouds show theirs.
std::string below_bridges(int pairs, const std::string& speed, int lanes, bool third = false) {
  std::string text = "<system version=\"1\"><cpu numaid=\"0\">";
  for (int i = 0; i < pairs; ++i) {
    text += fmt::format(
        "<pci busid=\"0000:{0}0:00.0\" link_speed=\"{1}\" link_width=\"{2}\">"
        "<pci busid=\"0000:{0}1:00.0\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><nic><net name=\"rdmap{0}\" "
        "speed=\"400000\" gdr=\"1\"/></nic></pci>"
        "<pci busid=\"0000:{0}2:00.0\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"{0}\" "
        "gdr=\"1\"/></pci>"
        "</pci>",
        i + 1, speed, lanes);
  }
  if (third)
    text +=
        "<pci busid=\"0000:90:00.0\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"9\" gdr=\"1\"/></pci>";
  return text + "</cpu></system>";
}

// The link above the bridge at which a GPU and an adapter meet carries none of what they send each other.
TEST(NcclTopology, OnlyLinksBetweenAGpuAndItsAdapterCount) {
  EXPECT_EQ(said_of(below_bridges(4, "16.0 GT/s PCIe", 8)), Lines{"pass: 4 GPUs and 4 adapters"});
  // A GPU without an adapter of its own is said to be far, and accuses no link.
  EXPECT_EQ(said_of(below_bridges(2, "16.0 GT/s PCIe", 8, true)),
            Lines{"warn: NCCL finds an adapter below a switch with 2 of 3 GPUs, not with 0000:90:00.0"});
  // Where no GPU is below a switch with an adapter, the way leads through the processor.
  const std::string alone =
      "<system><cpu><pci busid=\"0000:10:00.0\" link_speed=\"16.0 GT/s PCIe\" link_width=\"8\">"
      "<pci busid=\"0000:11:00.0\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><nic><net name=\"a\" "
      "speed=\"400000\"/></nic></pci></pci><pci busid=\"0000:20:00.0\"><gpu dev=\"0\" gdr=\"1\"/></pci></cpu></system>";
  EXPECT_THAT(said_of(alone), Contains(HasSubstr("a (400 Gb/s) by 0000:10:00.0 (126)")));
  // Two levels of switches: the link between them counts for a GPU that hangs on the upper one.
  const auto nested = [](const std::string& near_gpu) {
    return "<system><cpu><pci busid=\"0000:10:00.0\" link_speed=\"8.0 GT/s PCIe\" link_width=\"8\">"
           "<pci busid=\"0000:19:00.0\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"0\" "
           "gdr=\"1\"/></pci>"
           "<pci busid=\"0000:11:00.0\" link_speed=\"16.0 GT/s PCIe\" link_width=\"8\">" +
           near_gpu +
           "<pci busid=\"0000:12:00.0\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><nic><net name=\"a\" "
           "speed=\"400000\" gdr=\"1\"/></nic></pci></pci></pci></cpu></system>";
  };
  const std::string near_gpu =
      "<pci busid=\"0000:13:00.0\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"1\" gdr=\"1\"/></pci>";
  for (const std::string& gpu : {std::string(), near_gpu})
    EXPECT_THAT(said_of(nested(gpu)), Contains(HasSubstr("a (400 Gb/s) by 0000:11:00.0 (126)")));
}

TEST(NcclTopology, WhatIsNoneIsUnknown) {
  for (const char* text : {"", "rubbish", "<", "<<<>>>", "<system><cpu><pci busid=\"", "</a></b></c>", "<net name"})
    EXPECT_THAT(said_of(text), Contains(HasSubstr("unknown: NCCL's picture of the node cannot be read"))) << text;
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "<pci busid=\"0\">";
  EXPECT_TRUE(parse_topology(deep + "<gpu dev=\"0\">").gpus.empty());
}

TEST(NcclTopology, TheStageReadsItAndLeavesNoFile) {
  test::BenchJob job(2, 2);
  for (job::RankPlace& place : job.seats()) place.gpus = {2, 2, {"0", "1"}};
  std::vector<Node> nodes{{"node0", {{0, {}}, {1, {}}}, {}}, {"node1", {{2, {}}, {3, {}}}, {}}};
  const auto said = [&] {
    const std::vector<StageFinding> all = run_nccl_stage({job, nodes, config::BackendKind::cuda, ""});
    const auto at = std::ranges::find(all, "nccl.topology", &StageFinding::check);
    return at == all.end() ? ""
                           : fmt::format("{} {}: {}", name_of(at->finding.verdict), at->host, at->finding.evidence);
  };
  EXPECT_THAT(said(), HasSubstr("unknown node0"));
  job.topology = topology_of({{}, {1, 8, false}});
  EXPECT_THAT(said(), HasSubstr("warn node0: PCIe links carry less"));
  job.topology.clear();
  EXPECT_THAT(said(), HasSubstr("unknown node0"));
}

}  // namespace
}  // namespace harness::doctor
