// Copies between hosts and GPUs in the load stage: whose are slow, beside the others' and beside what links carry.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "bench_job.h"
#include "doctor/facts.h"

namespace harness::doctor {
namespace {

using test::nodes_of;
using test::said_by;
using test::told;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A GPU below a root port or, with a switch, below one that all such GPUs of the node share; each link has 16 lanes.
void add_gpu(Facts& facts, const std::string& gpu, bool below_switch, const std::string& speed = "32.0 GT/s PCIe") {
  const auto link = [&](const std::string& key) {
    facts.set(key + "/max_speed", speed);
    facts.set(key + "/max_width", "16");
  };
  const std::string bus = gpu.substr(5, 2), root = below_switch ? "0000:10:01.0" : "0000:" + bus + ":01.0",
                    upper = "0000:11:00.0", lower = "0000:12:" + bus + ".0";
  link("gpu/" + gpu);
  link("bridge/" + root);
  facts.set("bridge/" + root + "/above", "host");
  std::string path = "sys/devices/pci0000:10/" + root + "/";
  if (below_switch) {
    link("bridge/" + upper);
    facts.set("bridge/" + upper + "/above", root);
    link("bridge/" + lower);
    facts.set("bridge/" + lower + "/above", upper);
    path += upper + "/" + lower + "/";
  }
  facts.set("gpu/" + gpu + "/path", path + gpu);
}

const std::string gpus_of_node[] = {"0000:1a:00.0", "0000:1b:00.0"};

// Two GPUs on each node, with a rank and 63 GB/s each.
std::vector<Node> nodes_with_links(const job::Job& job, bool below_switch = false) {
  std::vector<Node> nodes = nodes_of(job);
  for (Node& node : nodes) {
    for (const std::string& gpu : gpus_of_node) add_gpu(node.facts, gpu, below_switch);
  }
  return nodes;
}

std::vector<StageFinding> said_with(test::BenchJob& job, const std::vector<Node>& nodes) {
  return run_load_stage({job, nodes, config::BackendKind::cuda, ""}, nullptr);
}

machine::HostCopies share_of(const machine::HostCopies& rates, double share) {
  return {share * rates.to_device_bytes_per_s, share * rates.from_device_bytes_per_s, share * rates.both_bytes_per_s};
}

TEST(HostCopies, AreMeasuredWhereTheProductsRan) {
  test::GpuJob job(2, 2);
  said_by(job);
  ASSERT_GE(job.requests.size(), 4u);
  EXPECT_EQ(job.requests[3].case_name, "host_copies");
  EXPECT_TRUE(std::holds_alternative<job::CopyWithHost>(job.requests[3].task));
  EXPECT_EQ(job.requests[3].layout.ranks(), 4);  // all at once
  EXPECT_EQ(job.started, 3);                     // for these four blocks, the all-reduce and the pairs
}

TEST(HostCopies, OfEqualRanksAreANumber) {
  test::GpuJob job(2, 2);
  const auto said = said_with(job, nodes_with_links(job));
  EXPECT_THAT(told(said), IsEmpty());
  EXPECT_THAT(told(said, Verdict::skip),
              Contains("info load.host_copies : host and GPU copy, on all ranks at once: 55 GB/s to the GPU, 52 GB/s "
                       "from the GPU, 90 GB/s both ways at once (87 % and 83 % of what the links carry); slowest: rank "
                       "0 on host0 with 55 GB/s to the GPU"));
}

TEST(HostCopies, ASlowRankIsNamedWithItsGpu) {
  test::GpuJob job(4, 2);
  job.host_copies[5].to_device_bytes_per_s = 27e9;
  const auto said = said_by(job);
  EXPECT_THAT(told(said), ElementsAre("fail load.host_copies host2: rank 5 with GPU 0000:1b:00.0 copies 27 GB/s to the "
                                      "GPU (the fast ones 55 GB/s)"));
  const auto found =
      std::ranges::find(said, Verdict::fail, [](const StageFinding& one) { return one.finding.verdict; });
  for (const char* check : {"pcie.width", "topo.numa", "rank.near_gpu", "pcie.iommu"})
    EXPECT_THAT(found->finding.remedy, HasSubstr(check));
  job.host_copies[5] = {55e9, 42e9, 70e9};
  EXPECT_THAT(
      told(said_with(job, nodes_with_links(job))),
      ElementsAre("warn load.host_copies host2: rank 5 with GPU 0000:1b:00.0 copies 42 GB/s from the GPU (the "
                  "fast ones 52 GB/s; 67 % of what its links carry), 70 GB/s both ways at once (the fast ones 90 "
                  "GB/s)"));
}

TEST(HostCopies, ThatAreSlowEverywhereAreOneWarning) {
  test::GpuJob job(4, 2);
  for (machine::HostCopies& rates : job.host_copies) rates = share_of(rates, 0.4);
  EXPECT_THAT(told(said_by(job)), IsEmpty()) << "nobody knows what the links carry";
  const auto said = said_with(job, nodes_with_links(job));
  EXPECT_THAT(told(said), ElementsAre(HasSubstr("warn load.host_copies : host and GPU copy, on all ranks at once: 22 "
                                                "GB/s to the GPU, 20.8 GB/s from the GPU, 36 GB/s both ways at once "
                                                "(35 % and 33 % of what the links carry)")));
}

// One link of 63 GB/s for both: each may have half of it, also beside nodes whose GPUs have a whole one.
TEST(HostCopies, GpusBelowOneSwitchShareTheLinkAboveIt) {
  test::GpuJob job(2, 2);
  std::vector<Node> nodes = nodes_with_links(job, true);
  EXPECT_NEAR(host_link_bytes_per_s(nodes[0].facts, gpus_of_node[0], {gpus_of_node[0]}).value_or(0), 63.0e9, 0.1e9);
  for (const std::size_t rank : {0, 1}) job.host_copies[rank] = share_of(job.host_copies[rank], 0.5);
  nodes[1] = nodes_with_links(job)[1];
  EXPECT_THAT(told(said_with(job, nodes)), IsEmpty());
  job.host_copies[1] = share_of(job.host_copies[1], 0.5);
  EXPECT_THAT(told(said_with(job, nodes)),
              ElementsAre(HasSubstr("rank 1 with GPU 0000:1b:00.0 copies 13.75 GB/s to the GPU (the fast ones 27.5 "
                                    "GB/s; 44 % of what its links carry)")));
}

// The rate of the whole way, by both ends of each of its links.
TEST(HostCopies, ALinkCarriesWhatBothOfItsEndsCan) {
  const auto limit = [](const Facts& facts) {
    return host_link_bytes_per_s(facts, gpus_of_node[0], {gpus_of_node[0]}).value_or(0) / 1e9;
  };
  Facts facts;
  add_gpu(facts, gpus_of_node[0], true);
  EXPECT_NEAR(limit(facts), 63.0, 0.1);
  facts.set("bridge/0000:12:1a.0/max_speed", "16.0 GT/s PCIe");
  facts.set("gpu/" + gpus_of_node[0] + "/max_width", "8");
  EXPECT_NEAR(limit(facts), 15.75, 0.05);
  facts.set("bridge/0000:10:01.0/max_speed", "2.5 GT/s PCIe");
  EXPECT_NEAR(limit(facts), 4.0, 0.01);
}

TEST(HostCopies, WithoutAKnownLinkTheOthersAreTheMeasure) {
  test::GpuJob job(4, 2);
  job.host_copies[3] = share_of(job.host_copies[3], 0.3);
  const std::vector<std::pair<std::string, std::string>> hiding{
      {"os/virtual", "yes"},                      // the bridges are the hypervisor's
      {"os/processor", "arm"},                    // Grace: NVLink-C2C
      {"gpu/0000:1b:00.0/max_speed", "Unknown"},  // of the GPU
      {"bridge/0000:1b:01.0/max_width", "255"},   // above it
      {"gpu/0000:1b:00.0/path", "sys/devices/pci0000:10/0000:1b:00.0"}};
  for (const auto& [fact, value] : hiding) {
    std::vector<Node> nodes = nodes_with_links(job);
    for (Node& node : nodes) node.facts.set(fact, value);
    EXPECT_EQ(host_link_bytes_per_s(nodes[1].facts, gpus_of_node[1], {gpus_of_node[1]}), std::nullopt) << fact;
    EXPECT_THAT(
        told(said_with(job, nodes)),
        ElementsAre(HasSubstr("fail load.host_copies host1: rank 3 with GPU 0000:1b:00.0 copies 16.5 GB/s to the "
                              "GPU (the fast ones 55 GB/s), 15.6 GB/s from")))
        << fact;
  }
}

// NVLink-C2C carries several times what a PCIe link does; /sys shows links beside it all the same.
TEST(HostCopies, OnGraceAreNotHeldAgainstPcie) {
  test::GpuJob job(2, 2);
  std::vector<Node> nodes = nodes_with_links(job);
  for (Node& node : nodes) node.facts.set("os/processor", "arm");
  for (machine::HostCopies& rates : job.host_copies) rates = {370e9, 290e9, 400e9};
  const auto lines = told(said_with(job, nodes), Verdict::skip);
  EXPECT_THAT(lines, Contains(HasSubstr("370 GB/s to the GPU, 290 GB/s from the GPU")));
  EXPECT_THAT(lines, Not(Contains(HasSubstr("of what the links carry"))));
}

TEST(HostCopies, ABlockOfThemThatFailsIsSaidAndTheOthersCount) {
  test::GpuJob job(4, 2);
  job.fails = [](const job::BlockRequest& r) {
    return r.case_name == "host_copies" ? "rank 3 on host1: the work on the GPU failed" : "";
  };
  job.link_bytes_per_s[5] = 20e9;
  EXPECT_THAT(told(said_by(job)),
              ElementsAre(HasSubstr("fail load.pairs host2: rank 5"),
                          HasSubstr("fail stage.load host1: copies between host and GPU failed: rank 3")));
}

TEST(HostCopies, AreMeasuredByWorkersOfTheirOwnWhereTheProductsFail) {
  test::GpuJob job(4, 2);
  job.host_copies[5] = share_of(job.host_copies[5], 0.5);
  int blocks = 0;
  for (const int failing : {1, 2, 3}) {
    job.fails = [&](const job::BlockRequest& r) {
      return r.case_name == "products" && ++blocks == failing ? "rank 3 on host1: no step finished" : "";
    };
    blocks = 0;
    EXPECT_THAT(told(said_by(job)), Contains(HasSubstr("fail load.host_copies host2: rank 5"))) << failing;
  }
}

TEST(HostCopies, AreNotMeasuredWithoutGpus) {
  test::BenchJob job(1, 2);
  const auto said = said_by(job, config::BackendKind::cpu);
  for (const job::BlockRequest& request : job.requests) EXPECT_NE(request.case_name, "host_copies");
  EXPECT_EQ(said.back().finding.verdict, Verdict::pass);
  EXPECT_THAT(said.back().finding.evidence, Not(HasSubstr("copies")));
}

}  // namespace
}  // namespace harness::doctor
