// Judgements of NCCL's log: passes, faults and unknowns.
#include "doctor/stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <span>

#include "base/text.h"
#include "bench_job.h"

namespace harness::doctor {
namespace {

using ::testing::HasSubstr;

using Lines = std::vector<std::string>;

// Logs in the formats of NCCL's source (init.cc, net.cc, net_ib.cc, net_socket.cc, bootstrap.cc, nvls.cc of 2.28).

/// The log of one rank.
class RankText {
 public:
  RankText& info(const std::string& message) {
    text_ += fmt::format("node1:4711:4711 [0] NCCL INFO {}\n", message);
    return *this;
  }
  RankText& starts(const std::string& interface) {
    return info(fmt::format("Bootstrap: Using {}:10.0.0.1<0>", interface));
  }
  RankText& version(const std::string& text) { return info("NCCL version " + text); }
  RankText& over(const std::string& network) { return info("Using network " + network); }
  RankText& adapters(int count) {
    std::string list = "NET/IB : Using";
    for (int i = 0; i < count; ++i) list += fmt::format(" [{0}]mlx5_{0}:1/IB", i);
    return info(list + " [RO]; OOB eth0:10.0.0.1<0>");
  }
  RankText& sends(const std::string& via) { return info("Channel 00/0 : 0[0] -> 8[0] [send] via " + via); }
  RankText& receives(const std::string& via) { return info("Channel 00/0 : 8[0] -> 0[0] [receive] via " + via); }
  RankText& peers(const std::string& via) { return info("Channel 00/0 : 0[0] -> 1[1] via " + via); }
  RankText& multicast(bool is) {
    return info(fmt::format("NVLS multicast support is {}available on dev 0 (NVLS_NCHANNELS 16)", is ? "" : "not "));
  }
  RankText& connects(int mtu) {  // 5 means an MTU of 4096 bytes
    return info(
        fmt::format("NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 260 mtu {} LID 17 subnet-prefix 65184  FLID 0 "
                    "fifoRkey=0x1 fifoLkey=0x1",
                    mtu));
  }
  RankText& warns(const std::string& text) {
    text_ += fmt::format("\n[2026-01-01 00:00:00] node1:4711:4711 [0] init.cc:1 NCCL WARN {}\n", text);
    return *this;
  }
  RankLog of(int rank) const { return {rank, nccl::parse_log(text_)}; }

 private:
  std::string text_;
};

/// A node with two GPUs and, by default, two adapters.
Node node_with_ports(const std::string& host, int first_rank, int ports = 2) {
  Node node{host, {{first_rank, {}}, {first_rank + 1, {}}}, {}};
  for (int i = 0; i < 2; ++i) {
    node.facts.set(fmt::format("gpu/0000:1{}:00.0/device", i), "0x2330");
    node.facts.set(fmt::format("nvml/0000:1{}:00.0/name", i), "NVIDIA H100 80GB HBM3");
    node.facts.set(fmt::format("nvml/0000:1{}:00.0/nvlinks_active", i), "18");
    node.facts.set(fmt::format("nvml/0000:1{}:00.0/fabric_state", i), "3");
  }
  for (int i = 0; i < ports; ++i) {
    const std::string port = fmt::format("port/mlx5_{}/1/", i);
    node.facts.set(port + "state", "ACTIVE");
    node.facts.set(port + "link_layer", "InfiniBand");
    node.facts.set(port + "rate", "400 Gb/sec (4X NDR)");
  }
  return node;
}

/// The log of a rank that has started.
RankText started() {
  return RankText().version("2.28.9+cuda13.0").starts("eth0");
}

/// The log of a rank on InfiniBand, without any connections yet.
RankText on_infiniband(int adapters = 2) {
  return started().adapters(adapters).over("IB");
}

/// The log of a healthy rank, which uses the adapter beside its GPU.
RankText sound(int rank) {
  RankText text = on_infiniband().multicast(true).connects(5);
  return text.sends(fmt::format("NET/IB/{}/GDRDMA", rank % 2)).peers("P2P/CUMEM");
}

/// The nodes and logs of a job of four ranks, all healthy until a test changes them.
struct Job {
  std::vector<Node> nodes{node_with_ports("node0", 0), node_with_ports("node1", 2)};
  std::vector<RankText> texts{sound(0), sound(1), sound(2), sound(3)};

  std::vector<StageFinding> judged() const {
    std::vector<RankLog> logs;
    for (std::size_t rank = 0; rank < texts.size(); ++rank) logs.push_back(texts[rank].of(static_cast<int>(rank)));
    return judge_nccl(nodes, logs);
  }
  // Lists the findings except pass, skip and info: "fail nccl.network node1: …".
  Lines told() const { return test::told(judged()); }
  Verdict verdict(const std::string& check, const std::string& host) const {
    for (const StageFinding& said : judged()) {
      if (said.check == check && said.host == host) return said.finding.verdict;
    }
    ADD_FAILURE() << check << " says nothing of " << host;
    return Verdict::unknown;
  }
};

TEST(NcclStage, ASoundJobPasses) {
  const Job job;
  EXPECT_EQ(job.told(), Lines{});
  for (const char* check : {"nccl.network", "nccl.gpu_direct", "nccl.rails", "nccl.interface", "nccl.peers",
                            "nccl.nvls", "nccl.mtu", "nccl.warnings"})
    EXPECT_EQ(job.verdict(check, "node1"), Verdict::pass) << check;
  EXPECT_EQ(job.verdict("nccl.version", ""), Verdict::pass);
}

// A change to a healthy job, and all resulting findings.
struct Case {
  std::function<void(Job&)> change;
  Lines told;
};

void write_ranks_of_node1(Job& job, const RankText& text) {
  job.texts[2] = job.texts[3] = text;
}
RankText on_sockets(const std::string& interface) {
  return RankText()
      .starts(interface)
      .info(fmt::format("NET/Socket : Using [0]{}:10.0.0.2<0>", interface))
      .over("Socket");
}

TEST(NcclStage, EachFaultIsFoundAndNothingElse) {
  const std::vector<Case> cases{
      {[](Job& job) { job.texts[3].connects(3); },
       {"warn nccl.mtu node1: ports send packets of 1024, 4096 bytes; 4096 are possible"}},
      {[](Job& job) { write_ranks_of_node1(job, on_sockets("eth0").sends("NET/Socket/0")); },
       {"fail nccl.network node1: NCCL talks over sockets, though ports are active for RDMA: mlx5_0:1, mlx5_1:1"}},
      {[](Job& job) {
         job.texts[0] = on_infiniband().multicast(true).sends("NET/IB/0");
         job.texts[1] = on_infiniband().multicast(true).sends("NET/IB/1");
       },
       {"fail nccl.gpu_direct node0: no connection uses GPUDirect RDMA: all goes through host memory"}},
      {[](Job& job) { job.texts[1] = on_infiniband().multicast(true).sends("NET/IB/1"); },
       {"warn nccl.gpu_direct node0: some connections use GPUDirect RDMA, others go through host memory"}},
      {[](Job& job) { write_ranks_of_node1(job, on_infiniband(1).sends("NET/IB/0/GDRDMA")); },
       {"warn nccl.rails node1: NCCL has 1 of 2 active ports; not mlx5_1:1"}},
      {[](Job& job) { write_ranks_of_node1(job, on_infiniband().sends("NET/IB/1(3)/GDRDMA")); },
       {"warn nccl.rails node1: connections use 1 of NCCL's 2 adapters; not mlx5_0:1"}},
      {[](Job& job) {  // two GPUs and three adapters, one of them for storage
         job.nodes = {node_with_ports("node0", 0, 3), node_with_ports("node1", 2, 3)};
         for (RankText& text : job.texts) text.adapters(3);
       },
       {}},
      // A device that combines an adapter's ports is numbered after all others. A plug-in's devices are not listed.
      {[](Job& job) { write_ranks_of_node1(job, on_infiniband().sends("NET/IB/2/GDRDMA")); }, {}},
      {[](Job& job) {
         job.texts.assign(4, started().over("IBext_v10").multicast(true).sends("NET/IBext_v10/0/GDRDMA"));
       },
       {}},
      {[](Job& job) {  // each rank has its own adapter (NCCL_IB_HCA), which is NCCL's first one
         for (std::size_t rank = 0; rank < job.texts.size(); ++rank) {
           const std::string list = fmt::format("NET/IB : Using [0]mlx5_{}:1/IB [RO]; OOB eth0:10.0.0.1<0>", rank % 2);
           job.texts[rank] = started().info(list).over("IB").multicast(true).sends("NET/IB/0/GDRDMA");
         }
       },
       {}},
      {[](Job& job) {  // the trays of a rack
         for (RankText& text : job.texts) text = on_infiniband().multicast(true).peers("P2P/MNNVL");
       },
       {}},
      {[](Job& job) { job.texts[0].starts("docker0"); }, {"warn nccl.interface node0: NCCL starts over docker0"}},
      {[](Job& job) { job.texts[0].peers("SHM/direct/direct"); },
       {"fail nccl.peers node0: ranks of the node talk through host memory (SHM), though their GPUs have NVLink"}},
      {[](Job& job) {  // cards whose bridges join them in pairs: no fabric
         job.texts[0].peers("SHM/direct/direct");
         Facts cards;
         for (const auto& [name, reading] : job.nodes[0].facts) {
           if (!name.ends_with("/fabric_state")) cards.set(name, reading);
         }
         job.nodes[0].facts = cards;
       },
       {"warn nccl.peers node0: ranks of the node talk through host memory (SHM), though their GPUs have NVLink"}},
      {[](Job& job) { job.texts[3].warns("Call to ibv_reg_mr failed with error Cannot allocate memory"); },
       {"warn nccl.warnings node1: NCCL warns: Call to ibv_reg_mr failed with error Cannot allocate memory"}}};
  for (const Case& one : cases) {
    Job job;
    one.change(job);
    EXPECT_EQ(job.told(), one.told);
  }
}

TEST(NcclStage, WhatANetworkDoesNotHaveIsNotMissed) {
  Job job;
  write_ranks_of_node1(job, RankText().over("AWS Libfabric"));
  EXPECT_EQ(job.verdict("nccl.mtu", "node1"), Verdict::skip);
  write_ranks_of_node1(job, RankText().starts("eth0").adapters(2).over("IB"));
  EXPECT_EQ(job.verdict("nccl.gpu_direct", "node1"), Verdict::unknown);  // no connection is logged
  for (const std::string& gpu : job.nodes[1].facts.under("gpu"))
    job.nodes[1].facts.set("driver/gpu/" + gpu, "NVIDIA GeForce RTX 4090");
  EXPECT_EQ(job.verdict("nccl.gpu_direct", "node1"), Verdict::skip);
  job.nodes[1].facts.set("gpu/0000:1f:00.0/device", "0x2330");  // a GPU without a rank
  EXPECT_EQ(job.verdict("nccl.rails", "node1"), Verdict::skip);
}

// A single node needs no network, and without ports there is no better option than sockets.
TEST(NcclStage, SocketsOfOneNode) {
  Job alone;
  alone.nodes.resize(1);
  alone.texts = {on_sockets("lo"), on_sockets("lo")};
  EXPECT_EQ(alone.verdict("nccl.network", "node0"), Verdict::warn);
  EXPECT_EQ(alone.verdict("nccl.interface", "node0"), Verdict::pass);
  alone.nodes[0] = node_with_ports("node0", 0, 0);
  EXPECT_EQ(alone.verdict("nccl.network", "node0"), Verdict::pass);
}

TEST(NcclStage, DataOverAnInterfaceThatReachesNoOtherNode) {
  Job job;
  for (Node& node : job.nodes) node = node_with_ports(node.host, node.ranks[0].rank, 0);
  for (RankText& text : job.texts) text = on_sockets("lo");
  EXPECT_THAT(job.told(), ::testing::Contains("fail nccl.interface node0: NCCL's data goes over lo"));
}

TEST(NcclStage, RanksOnDifferentNetworks) {
  Job job;
  job.texts[3].over("Socket");
  EXPECT_THAT(job.told(),
              ::testing::Contains(HasSubstr("fail nccl.network node1: the ranks of the node use different")));
}

// Each end of a connection decides for itself: a GPU's sends may take another path than its receives.
TEST(NcclStage, GpuDirectIsJudgedByDirection) {
  const std::string direct = "NET/IB/0/GDRDMA", by_host = "NET/IB/0";
  const auto verdict = [&](const std::string& sends, const std::string& receives) {
    Job job;
    for (int rank : {0, 1}) {
      RankText& text = job.texts[rank] = on_infiniband();
      if (!sends.empty()) text.sends(sends);
      if (!receives.empty()) text.receives(receives);
    }
    return std::string(name_of(job.verdict("nccl.gpu_direct", "node0")));
  };
  EXPECT_EQ(verdict(by_host, direct), "warn");
  EXPECT_EQ(verdict(direct, by_host), "warn");
  EXPECT_EQ(verdict(direct, direct), "pass");
  EXPECT_EQ(verdict(by_host, by_host), "fail");
  EXPECT_EQ(verdict(by_host, ""), "fail");
  EXPECT_EQ(verdict("", direct), "pass");
}

TEST(NcclStage, EfaWithoutItsPlugin) {
  Job job;
  for (Node& node : job.nodes) {
    node = node_with_ports(node.host, node.ranks[0].rank, 0);
    node.facts.set("hca/rdmap0s0/vendor", "0x1d0f");
    node.facts.set("port/rdmap0s0/1/state", "ACTIVE");
  }
  for (RankText& text : job.texts) text = RankText().starts("eth0").over("Socket");
  EXPECT_THAT(job.told(),
              ::testing::Contains("fail nccl.network node1: NCCL uses Socket, not EFA: its plug-in is missing"));
  for (RankText& text : job.texts) text = RankText().starts("eth0").over("AWS Libfabric");
  EXPECT_EQ(job.verdict("nccl.network", "node1"), Verdict::pass);
}

TEST(NcclStage, AFabricWithoutMulticast) {
  Job job;
  for (RankText& text : job.texts) text = on_infiniband().multicast(false);
  EXPECT_EQ(job.verdict("nccl.nvls", "node0"), Verdict::warn);
  job.texts[1].multicast(true);
  EXPECT_EQ(job.verdict("nccl.nvls", "node0"), Verdict::warn);
  for (RankText& text : std::span(job.texts).last(2)) text.info("NCCL_NVLS_ENABLE set by environment to 0.");
  EXPECT_EQ(job.verdict("nccl.nvls", "node1"), Verdict::skip);
  job.texts[2] = job.texts[3] = RankText().starts("eth0").over("IB").multicast(false);
  for (const std::string& gpu : job.nodes[1].facts.under("nvml"))
    job.nodes[1].facts.set(fmt::format("nvml/{}/fabric_state", gpu), "1");
  EXPECT_EQ(job.verdict("nccl.nvls", "node1"), Verdict::skip);
}

TEST(NcclStage, ANodeWithoutALogIsUnknown) {
  Job job;
  job.texts.resize(2);
  std::size_t unknown = 0;
  for (const StageFinding& said : job.judged()) {
    if (said.host != "node1") continue;
    EXPECT_EQ(said.finding.verdict, Verdict::unknown) << said.check;
    ++unknown;
  }
  EXPECT_EQ(unknown, nccl_checks().size() - 1);  // the version belongs to the job
  job.texts.assign(4, RankText());               // an empty log neither passes nor fails
  for (const char* check : {"nccl.network", "nccl.interface", "nccl.gpu_direct"})
    EXPECT_EQ(job.verdict(check, "node0"), Verdict::unknown) << check;
  EXPECT_EQ(job.verdict("nccl.version", ""), Verdict::unknown);
}

TEST(NcclStage, RunsOneBlockOverAllRanksAndReadsEveryLog) {
  test::GpuJob job(2, 2);
  job.log = [](int rank) {
    return fmt::format("node:1:1 [0] NCCL INFO Using network {}\n", rank < 2 ? "IB" : "Socket");
  };
  const std::vector<Node> nodes{node_with_ports("node0", 0), node_with_ports("node1", 2)};
  const std::vector<StageFinding> said = run_nccl_stage({job, nodes, config::BackendKind::cuda, ""});
  ASSERT_EQ(job.requests.size(), 1u);
  EXPECT_EQ(job.requests[0].layout.ranks(), 4);
  EXPECT_EQ(job.requests[0].settings.workload, "collective");
  EXPECT_EQ(std::get<job::Observe>(job.requests[0].task).logs, 4);
  const auto failed = std::ranges::find(said, Verdict::fail, [](const StageFinding& s) { return s.finding.verdict; });
  ASSERT_NE(failed, said.end());
  EXPECT_EQ(failed->check, "nccl.network");
  EXPECT_EQ(failed->host, "node1");
  EXPECT_EQ(said.back().check, "stage.nccl");
  EXPECT_EQ(said.back().finding.verdict, Verdict::pass);
}

TEST(NcclStage, ABlockThatFailsNamesItsRank) {
  test::GpuJob job(2, 2);
  const std::vector<Node> nodes{node_with_ports("node0", 0), node_with_ports("node1", 2)};
  const auto outcome = [&](const std::string& reason) {
    job.fails = [reason](const job::BlockRequest&) { return reason; };
    const std::vector<StageFinding> said = run_nccl_stage({job, nodes, config::BackendKind::cuda, ""});
    EXPECT_EQ(said.size(), 1u);
    return test::told(said).at(0);
  };
  EXPECT_EQ(outcome("rank 3 on node1: error: ncclSystemError"),
            "fail stage.nccl node1: an all-reduce over all ranks failed: rank 3 on node1: error: ncclSystemError");
  EXPECT_THAT(outcome("rank 3 on node1: Mismatched NCCL version detected : rank 0 version 22809 rank 3 version 22105"),
              HasSubstr("fail nccl.version node1: "));
  EXPECT_THAT(outcome("rank 3 on node1: no step finished within 4.5 s (deadlines: step)"),
              HasSubstr("fail stage.nccl node1: an all-reduce over all ranks did not end: "));
}

}  // namespace
}  // namespace harness::doctor
