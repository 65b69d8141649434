// Copies between hosts and GPUs in the load stage: whose are slow, beside the others' and beside what links carry.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "bench_job.h"

namespace harness::doctor {
namespace {

using test::nodes_of;
using test::said_by;
using test::told;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string gpus_of_node[] = {"0000:1a:00.0", "0000:1b:00.0"};

// Two GPUs on each node, with a rank each, and links of 63 GB/s below root ports of their own or below one.
std::vector<Node> nodes_with_links(const job::Job& job, bool below_one_port = false) {
  std::vector<Node> nodes = nodes_of(job);
  for (Node& node : nodes) {
    for (const std::string& gpu : gpus_of_node) {
      const std::string key = "gpu/" + gpu,
                        root = below_one_port ? "0000:10:01.0" : "0000:" + gpu.substr(5, 2) + ":01.0";
      node.facts.set(key + "/speed_of_link", "32.0 GT/s PCIe");
      node.facts.set(key + "/width_of_link", "16");
      node.facts.set(key + "/path", "sys/devices/pci0000:10/" + root + "/" + gpu);
    }
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
  EXPECT_THAT(told(said_with(job, nodes_with_links(job))),
              ElementsAre("warn load.host_copies host2: rank 5 with GPU 0000:1b:00.0 copies 42 GB/s from the GPU (the "
                          "fast ones 52 GB/s), 70 GB/s both ways at once (the fast ones 90 GB/s)"));
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

// One link of 63 GB/s for both: each may have half of it.
TEST(HostCopies, GpusBelowOneRootPortShareItsLink) {
  test::GpuJob job(2, 2);
  for (machine::HostCopies& rates : job.host_copies) rates = share_of(rates, 0.5);
  EXPECT_THAT(told(said_with(job, nodes_with_links(job, true))), IsEmpty());
  EXPECT_THAT(told(said_with(job, nodes_with_links(job))), ElementsAre(HasSubstr("warn load.host_copies : ")));
}

TEST(HostCopies, WithoutAKnownLinkTheOthersAreTheMeasure) {
  test::GpuJob job(4, 2);
  for (machine::HostCopies& rates : job.host_copies) rates = share_of(rates, 0.4);
  job.host_copies[3] = share_of(job.host_copies[3], 0.3);
  const std::vector<std::pair<std::string, std::string>> hiding{
      {"os/virtual", "yes"},    // the bridges are the hypervisor's
      {"os/processor", "arm"},  // Grace: NVLink-C2C
      {"gpu/0000:1b:00.0/speed_of_link", "Unknown"},
      {"gpu/0000:1b:00.0/path", ""}};
  for (const auto& [fact, value] : hiding) {
    std::vector<Node> nodes = nodes_with_links(job);
    for (Node& node : nodes) node.facts.set(fact, value);
    EXPECT_THAT(told(said_with(job, nodes)),
                ElementsAre(HasSubstr("fail load.host_copies host1: rank 3 with GPU 0000:1b:00.0 copies")))
        << fact;
  }
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

}  // namespace
}  // namespace harness::doctor
