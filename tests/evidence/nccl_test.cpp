// NCCL's logs and files: a fault of one part of a node is named with that part; unreadable parts are not judged.
#include <gmock/gmock.h>

#include "base/text.h"
#include "evidence/answer.h"
#include "evidence/expectations.h"
#include "support/errors.h"
#include "support/files.h"

namespace harness::test {
namespace {

using evidence::Answer;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Returns the whole text of an answer.
std::string said_by(const Answer& answer) {
  std::string said = answer.headline;
  for (const auto& list : {answer.problems, answer.notes}) said += "\n" + join(list, "\n");
  for (const auto& [label, text] : answer.evidence) said += "\n" + text;
  return said;
}

// ---- its topology

// Replaces each `from` in `text` by `to`.
std::string with(const std::string& text, const std::string& from, const std::string& to) {
  return join(split_text(text, from), to);
}

// A switch with a GPU and an adapter, and a second such switch: only the links and the port of the first pair vary.
struct Links {
  std::string gpu_speed = "32.0 GT/s PCIe", gpu_lanes = "16", adapter_speed = "32.0 GT/s PCIe", adapter_lanes = "16",
              port = "400000";

  std::string xml() const {
    std::string text = "<system version=\"1\">\n<cpu numaid=\"0\" arch=\"x86_64\">\n";
    for (int i = 0; i < 2; ++i) {
      const Links links = i == 0 ? *this : Links{};
      text += fmt::format(
          "<pci busid=\"0000:{0}0:00.0\" class=\"0x060400\" link_speed=\"16.0 GT/s PCIe\" link_width=\"8\">\n"
          "<pci busid=\"0000:{0}1:00.0\" class=\"0x020000\" link_speed=\"{1}\" link_width=\"{2}\">\n"
          "<nic><net name=\"mlx5_{5}\" dev=\"{5}\" speed=\"{6}\" port=\"1\" gdr=\"1\"/></nic>\n</pci>\n"
          "<pci busid=\"0000:{0}2:00.0\" class=\"0x030200\" link_speed=\"{3}\" link_width=\"{4}\">\n"
          "<gpu dev=\"{5}\" sm=\"90\" rank=\"{5}\" gdr=\"1\"/>\n</pci>\n</pci>\n",
          i + 2, links.adapter_speed, links.adapter_lanes, links.gpu_speed, links.gpu_lanes, i, links.port);
    }
    return text + "</cpu>\n</system>\n";
  }
};

TEST(NcclTopology, ANarrowLinkIsThatOfTheGpuOrTheAdapter) {
  const auto problems = [&](const Links& links) { return answer_to(links.xml()).problems; };
  EXPECT_THAT(problems({}), testing::IsEmpty());
  for (const char* lanes : {"1", "2", "4", "8"}) {
    EXPECT_THAT(problems({.gpu_lanes = lanes}),
                testing::ElementsAre(HasSubstr(fmt::format("GPU 0 (0000:22:00.0) has {} lanes", lanes))));
    EXPECT_THAT(problems({.adapter_lanes = lanes}),
                testing::ElementsAre(HasSubstr(fmt::format("mlx5_0 has {} lanes", lanes))));
  }
  for (const char* speed : {"2.5 GT/s PCIe", "8.0 GT/s PCIe", "16.0 GT/s PCIe"}) {
    EXPECT_THAT(problems({.gpu_speed = speed}), testing::ElementsAre(HasSubstr("GPU 0 (0000:22:00.0) has 16 lanes")));
    EXPECT_THAT(problems({.adapter_speed = speed}), testing::ElementsAre(HasSubstr("mlx5_0 has 16 lanes")));
  }
  EXPECT_THAT(problems({.gpu_lanes = "4", .port = "100000"}), testing::IsEmpty());
  // The ports are faster than any GPU of this generation.
  const std::string older = with(Links{}.xml(), "32.0 GT/s", "16.0 GT/s");
  EXPECT_THAT(answer_to(older).notes, Contains(HasSubstr("one GPU alone cannot fill it")));
  for (const std::string& problem : answer_to(older).problems)
    EXPECT_THAT(problem, testing::Not(HasSubstr("GPU"))) << problem;
}

TEST(NcclTopology, DevicesThatLackTheSameAreToldTogether) {
  const std::string narrow = with(Links{}.xml(), "\"16\">\n<nic>", "\"4\">\n<nic>");
  EXPECT_THAT(answer_to(narrow).headline, HasSubstr("mlx5_0 and mlx5_1 have 4 lanes"));
  EXPECT_EQ(answer_to(with(Links{}.xml(), "port=\"1\" gdr=\"1\"", "gdr=\"0\"")).headline,
            "no GPUDirect RDMA for mlx5_0 and mlx5_1");
}

TEST(NcclTopology, WhatCannotBeReadIsUnknownAndNotJudged) {
  for (std::string Links::*part :
       {&Links::gpu_speed, &Links::gpu_lanes, &Links::adapter_speed, &Links::adapter_lanes, &Links::port}) {
    for (const char* bad : {"", "0", "-1", "Unknown", "nan", "-nan", "inf", "1e300", "9999999999", "x"}) {
      Links links;
      links.*part = bad;
      const Answer answer = answer_to(links.xml());
      const std::string said = said_by(answer);
      EXPECT_THAT(answer.problems, testing::IsEmpty()) << bad;
      EXPECT_THAT(said, testing::Not(HasSubstr("no PCIe link is narrower"))) << bad;
      EXPECT_THAT(said, testing::Not(testing::ContainsRegex("nan GB|inf G|nan G"))) << bad;
      EXPECT_THAT(answer.notes, testing::Contains(HasSubstr("not judged"))) << bad;
    }
  }
}

TEST(NcclTopology, ACutFileIsSaidToBeCut) {
  for (const std::string& whole :
       {Links{}.xml(), text_of(sample_file("nccl-topology.xml")), text_of(sample_file("nccl-graph.xml"))}) {
    const std::size_t last = whole.rfind('>');
    for (std::size_t length = whole.find('>') + 1; length <= last; length += 3) {
      EXPECT_THAT(error_of([&] { answer_to(whole.substr(0, length)); }),
                  testing::AnyOf(HasSubstr("it is cut"), HasSubstr("it holds no")))
          << whole.substr(0, length);
    }
    EXPECT_EQ(error_of([&] { answer_to(whole.substr(0, last + 1)); }), "");
  }
}

// ---- its log

// Returns the log lines of rank `gpu` of 16 on two nodes about its two channels to the other node.
std::string channels(int gpu, int sends_directly, int receives_directly, const char* host = "nodeA") {
  std::string text;
  for (int channel = 0; channel < 2; ++channel) {
    const std::string head = fmt::format("{0}:501:54{1} [{1}] NCCL INFO Channel 0{2}/0 : ", host, gpu, channel);
    text += fmt::format(
        "{0}{1}[{2}] -> {2}[{2}] [receive] via NET/IB/{2}{3}\n{0}{2}[{2}] -> {1}[{2}] [send] via NET/IB/{2}{4}\n", head,
        gpu + 8, gpu, channel < receives_directly ? "/GDRDMA" : "", channel < sends_directly ? "/GDRDMA" : "");
  }
  return text;
}

const std::string on_infiniband =
    "nodeA:501:540 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB ib0:10.0.0.1<0>\n"
    "nodeA:501:540 [0] NCCL INFO Using network IB\n";

TEST(NcclLog, GpuDirectIsThatOfEachDirection) {
  for (int drawn = 0; drawn < 81; ++drawn) {
    const int s0 = drawn % 3, r0 = drawn / 3 % 3, s1 = drawn / 9 % 3, r1 = drawn / 27;
    const Answer answer = answer_to(on_infiniband + channels(0, s0, r0) + channels(1, s1, r1));
    SCOPED_TRACE(fmt::format("sends {} {}, receives {} {}: {}", s0, s1, r0, r1, said_by(answer)));
    const int direct = s0 + r0 + s1 + r1;
    if (direct == 0) {
      EXPECT_THAT(answer.problems, ElementsAre(HasSubstr("nodeA does not use GPUDirect RDMA")));
    } else if (direct == 8) {
      EXPECT_THAT(answer.headline, HasSubstr("nothing is wrong"));
    } else if (s0 + s1 == 0 && r0 + r1 == 4) {
      EXPECT_THAT(answer.problems, IsEmpty());
      EXPECT_THAT(answer.notes, Contains(HasSubstr("NCCL_NET_GDR_READ=0")));
    } else {
      EXPECT_THAT(answer.problems, ElementsAre(HasSubstr("GPUDirect RDMA is used in part: nodeA")));
    }
  }
}

TEST(NcclLog, SendsWithoutGpuDirectAreWrongWhereNcclWasToSendWithIt) {
  const std::string receives = on_infiniband + channels(0, 0, 2), prefix = "nodeA:501:540 [0] NCCL INFO ";
  const auto problems = [&](const std::string& more) { return answer_to(receives + more).problems; };
  EXPECT_THAT(problems(""), IsEmpty());
  EXPECT_THAT(problems(prefix + "NCCL_NET_GDR_READ set by environment to 0.\n"), IsEmpty());
  for (const std::string& more : {prefix + "NCCL_NET_GDR_READ set by environment to 1.\n", channels(0, 2, 2, "nodeB")})
    EXPECT_THAT(problems(more), ElementsAre(HasSubstr("used in part: nodeA sends without it and receives with it")))
        << more;
}

TEST(NcclLog, RanksOfAHostThatDifferAreNamed) {
  const std::pair<const char*, const char*> facts[] = {
      {"Using network IB", "Using network Socket"}, {"NCCL version 2.27.3+cuda12.9", "NCCL version 2.21.5+cuda12.4"}};
  for (const auto& [usual, odd] : facts) {
    const auto problems = [&, first = usual](const char* second) {
      return answer_to(fmt::format("n1:500:600 [0] NCCL INFO {}\nn1:501:601 [1] NCCL INFO {}\n", first, second))
          .problems;
    };
    EXPECT_THAT(problems(usual), IsEmpty());
    EXPECT_THAT(problems(odd), ElementsAre(HasSubstr("ranks of n1 differ in ")));
  }
  std::string own;  // each rank is assigned an adapter
  for (int rank = 0; rank < 2; ++rank)
    own += fmt::format(
        "n1:50{0}:60{0} [{0}] NCCL INFO NCCL_IB_HCA set to mlx5_{0}\n"
        "n1:50{0}:60{0} [{0}] NCCL INFO NET/IB : Using [0]mlx5_{0}:1/IB [RO]; OOB e:1\n",
        rank);
  EXPECT_THAT(answer_to(own).problems, IsEmpty());
}

TEST(NcclLog, OneGpuOnAnotherTransportIsNamed) {
  const auto ring = [](int alone) {
    std::string text;
    for (int gpu = 0; gpu < 4; ++gpu) {
      const int next = (gpu + 1) % 4;
      text += fmt::format("n1:501:50{0} [{0}] NCCL INFO Channel 00/0 : {0}[{0}] -> {1}[{1}] via {2}\n", gpu, next,
                          gpu == alone || next == alone ? "SHM/direct/direct" : "P2P/CUMEM");
    }
    return text;
  };
  EXPECT_THAT(answer_to(ring(-1)).problems, IsEmpty());
  for (int alone = 0; alone < 4; ++alone)
    EXPECT_THAT(answer_to(ring(alone)).problems,
                ElementsAre(HasSubstr(fmt::format("GPU {} of n1: only through host memory", alone))));
}

std::string on_sockets(const std::string& devices, const std::string& channels) {
  std::string text =
      "n1:31:31 [0] NCCL INFO Bootstrap : Using eth0:10.1.0.11<0>\nn1:31:40 [0] NCCL INFO NET/IB : No device found.\n"
      "n1:31:40 [0] NCCL INFO NET/Socket : Using " +
      devices + "\nn1:31:40 [0] NCCL INFO Using network Socket\n";
  for (const std::string& channel : split_text(channels, ";")) text += "n1:31:40 [0] NCCL INFO " + channel + "\n";
  return text;
}

TEST(NcclLog, AConnectionOverTheNetworkProvesASecondNode) {
  const std::string eth = "[0]eth0:10.1.0.11<0>";
  for (const char* channels : {"Channel 00/0 : 8[0] -> 0[0] [receive] via NET/Socket/0",
                               "comm 0x5 rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0"})
    EXPECT_THAT(answer_to(on_sockets(eth, channels)).headline,
                HasSubstr("NCCL runs over TCP sockets: no InfiniBand or RoCE adapter was found"))
        << channels;
  for (const char* channels : {"Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM",
                               "comm 0x5 rank 0 nRanks 8 nNodes 1 localRanks 8 localRank 0 MNNVL 0"})
    EXPECT_THAT(answer_to(on_sockets(eth, channels)).headline, Not(HasSubstr("TCP sockets"))) << channels;
}

TEST(NcclLog, VirtualInterfacesAreNamed) {
  const std::string far = "Channel 00/0 : 8[0] -> 0[0] [receive] via NET/Socket/0";
  for (const std::string name :
       {"docker0", "br-1a2b3c", "br-0f1e2d3c4b5a", "cni0", "tailscale0", "veth12ab", "virbr0", "flannel.1",
        "cilium_host", "wg0", "tun0", "tap0", "tunl0", "lo", "cali0ab", "vxlan.calico", "podman1"}) {
    const Answer answer = answer_to(on_sockets("[0]eth0:10.1.0.11<0> [1]" + name + ":172.18.0.1<0>", far));
    EXPECT_THAT(answer.problems, Contains(AllOf(HasSubstr("NCCL uses " + name + " on n1"), HasSubstr("=^docker,lo"))))
        << name;
  }
  for (const std::string name : {"eth1", "eno1", "enp1s0f0np0", "ib0", "bond0", "hsn0", "br0", "br-ex", "br-bond0",
                                 "team0", "rdma0", "lom1", "net1"}) {
    const Answer answer = answer_to(on_sockets("[0]eth0:10.1.0.11<0> [1]" + name + ":10.2.0.1<0>", far));
    EXPECT_THAT(answer.problems, ElementsAre(HasSubstr("TCP sockets"))) << name;
  }
}

// Ranks on nodes n0, n1, … with four GPUs and four adapters each, in a ring that uses another adapter for each channel.
struct Job {
  int nodes = 2, only_adapter = -1;         // -1: each channel has its own
  std::vector<int> silent = {}, open = {};  // ranks without a log; ranks that do not finish initialisation
  std::string over_memory = {};             // the node whose GPUs have no direct peer access

  std::string text() const {
    std::string all;
    const int ranks = 4 * nodes;
    for (int rank = 0; rank < ranks; ++rank) {
      if (std::ranges::find(silent, rank) != silent.end()) continue;
      const std::string node = fmt::format("n{}", rank / 4);
      const std::string head = fmt::format("{}:5{}:6{} [{}] NCCL INFO ", node, rank, rank, rank % 4);
      const std::string comm =
          fmt::format("comm 0x5{} rank {} nranks {} cudaDev {} commId 0xab", rank, rank, ranks, rank % 4);
      all += fmt::format(
          "{0}NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [2]mlx5_2:1/IB [3]mlx5_3:1/IB [RO]; OOB e:1\n"
          "{0}Using network IB\n{0}{1} - Init START\n"
          "{0}comm 0x5{2} rank {2} nRanks {3} nNodes {4} localRanks 4 localRank {5} MNNVL 0\n",
          head, comm, rank, ranks, nodes, rank % 4);
      for (int channel = 0; channel < 4; ++channel) {
        const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
        const auto pair = [&](int from, int to) {
          return fmt::format("{}Channel 0{}/0 : {}[{}] -> {}[{}]", head, channel, from, from % 4, to, to % 4);
        };
        const std::string far = fmt::format("via NET/IB/{}/GDRDMA\n", only_adapter < 0 ? channel : only_adapter);
        std::string way = " [send] " + far;
        if (next / 4 == rank / 4) way = node == over_memory ? " via SHM/direct/direct\n" : " via P2P/CUMEM\n";
        all += pair(rank, next) + way;
        if (rank % 4 == 0) all += pair(before, rank) + " [receive] " + far;
      }
      if (std::ranges::find(open, rank) == open.end()) all += fmt::format("{}{} - Init COMPLETE\n", head, comm);
    }
    return all;
  }
};

TEST(NcclLog, OneAdapterForAllThatLeavesANodeIsAProblem) {
  EXPECT_THAT(answer_to(Job{}.text()).problems, IsEmpty());
  EXPECT_EQ(answer_to(Job{.only_adapter = 2}.text()).headline, "adapters in use: 1 of 4 on each host");
  // A partial log does not show the other ranks' adapters.
  const Answer first = answer_to(Job{.only_adapter = 2, .silent = {1, 2, 3, 4, 5, 6, 7}}.text());
  EXPECT_EQ(first.headline,
            "8 ranks on 2 hosts, of which this log has 1 rank, network IB: nothing is wrong that this "
            "log shows");
  EXPECT_THAT(first.next, Contains(HasSubstr("ppr:4:node")));
}

TEST(NcclLog, ANodeThatUsesHostMemoryWhereAnotherDoesNotIsNamed) {
  EXPECT_EQ(answer_to(Job{.over_memory = "n1"}.text()).headline,
            "GPUs of n1 talk through host memory (SHM), those of n0 directly (P2P)");
}

TEST(NcclLog, RanksThatNeverBeganAreNamedBeforeThoseThatWait) {
  const Answer answer = answer_to(Job{.silent = {6}, .open = {0, 1, 2, 3, 4, 5, 7}}.text());
  EXPECT_EQ(answer.headline, "1 of 8 ranks never began to initialise: 6");
  EXPECT_THAT(answer.problems, Contains(HasSubstr("7 of 8 ranks began to initialise and did not end")));
  EXPECT_THAT(answer_to(Job{.silent = {1, 2, 3, 5, 6, 7}, .open = {0, 4}}.text()).headline,
              HasSubstr("2 of 8 ranks began"));
}

// Returns the log of four ranks on two nodes that are split into pairs on a node, then into pairs across the nodes;
// then all are destroyed.
std::string split_into_pairs(bool with_colors) {
  std::string text;
  for (int rank = 0; rank < 4; ++rank) {
    const int node = rank / 2, gpu = rank % 2;
    const std::string head = fmt::format("n{0}:5{1}:6{1} [{2}] NCCL INFO ", node, rank, gpu);
    const auto begin_and_end = [&](int own, int ranks, const std::string& id, const std::string& channel) {
      const std::string comm =
          fmt::format("{}comm 0x5{} rank {} nranks {} cudaDev {} {}", head, rank, own, ranks, gpu, id);
      text += fmt::format("{} - Init START\n{}{} - Init COMPLETE\n", comm, channel, comm);
    };
    const auto parted = [&](int number, int color) {
      return with_colors ? fmt::format("parent 0x7{} splitCount {} color {} key 0", rank, number, color)
                         : "busId 1b000";
    };
    const std::string far = fmt::format("{0}Channel 00/0 : 0[{1}] -> 1[{1}] [{2}] via NET/IB/0/GDRDMA\n", head, gpu,
                                        node == 0 ? "send" : "receive");
    begin_and_end(rank, 4, "commId 0xab", "");
    begin_and_end(gpu, 2, parted(1, node), head + "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n");
    begin_and_end(node, 2, parted(2, gpu), far);
    for (const auto& [own, ranks] : {std::pair(node, 2), {gpu, 2}, {rank, 4}})
      text += fmt::format("{}comm 0x5 rank {} nranks {} cudaDev {} busId 1b000 - Destroy COMPLETE\n", head, own, ranks,
                          gpu);
  }
  return text;
}

// Since NCCL 2.23 a communicator that another was split into has no commId.
TEST(NcclLog, SplitsOfOneSizeAreToldByTheirColor) {
  const Answer answer = answer_to(split_into_pairs(true));
  EXPECT_THAT(answer.problems, IsEmpty());
  EXPECT_THAT(answer.notes, Not(Contains(HasSubstr("commId"))));
  EXPECT_EQ(fact(answer, "communicators"), "5");
}

TEST(NcclLog, OfCommunicatorsThatCountAsOneNoRanksShareANode) {
  const Answer answer = answer_to(split_into_pairs(false));
  EXPECT_THAT(answer.problems, IsEmpty());
  EXPECT_THAT(answer.notes, Contains(HasSubstr("communicators of equal size count as one")));
}

TEST(NcclLog, NodesThatListOtherAdaptersDifferInThoseAlone) {
  const auto headline = [](const std::vector<std::string>& lists) {
    std::string text;
    for (std::size_t node = 0; node < lists.size(); ++node)
      text += fmt::format(
          "n{0}:1:2 [0] NCCL INFO NET/IB : Using {1} [RO]; OOB e:1\nn{0}:1:2 [0] NCCL INFO Using network "
          "IB\n",
          node, lists[node]);
    return answer_to(text).headline;
  };
  const std::string one = "[0]mlx5_0:1/IB", both = one + " [1]mlx5_1:1/IB";
  EXPECT_EQ(headline({one, both}), "adapters mlx5_1:1/IB on n1, no other on n0");
  EXPECT_EQ(headline({both, one, both}), "adapters no other on n1, mlx5_1:1/IB on the others");
}

// Each text in the wording of some NCCL release, and the expected answer.
TEST(NcclLog, WarningsAreKnownInEachWording) {
  const std::pair<const char*, const char*> wordings[] = {
      {"init.cc:9 NCCL WARN Mismatched NCCL version detected : rank 3 version 22105", "different versions of NCCL"},
      {"net_ib.cc:9 NCCL WARN NET/IB : NCCL version mismatch with remote peer", "different versions of NCCL"},
      {"p2p.cc:9 NCCL WARN NET/IB: Got completion from peer 10.0.0.7<4> with status=IBV_WC_LOC_PROT_ERR(4) opcode=0",
       "may not reach the memory"},
      {"p2p.cc:9 NCCL WARN NET/IB: Got completion from peer 10.0.0.7<4> with status=IBV_WC_REM_INV_REQ_ERR(9) opcode=0",
       "may not reach the memory"},
      {"net_ib.cc:9 NCCL WARN NET/IB : Got completion from peer 10.0.0.7<4> with error 9, opcode 1, len 0",
       "may not reach the memory"},
      {"p2p.cc:9 NCCL WARN NET/IB: Got completion from peer 10.0.0.7<4> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=0",
       "no answer from 10.0.0.7"},
      {"transport/nvls.cc:9 NCCL WARN Cuda failure 1 'invalid argument'", "fabric manager"},
      {"transport/p2p.cc:9 NCCL WARN Cuda failure 1 'invalid argument'", "a CUDA call failed"},
      {"socket.cc:9 NCCL WARN socketPollConnect: Connect to 10.0.0.9<4> returned 111(Connection refused) errno 115",
       "cannot reach 10.0.0.9"},
      {"linux.cc:9 NCCL WARN connect to 10.0.0.9<4> returned Connection refused, exceeded error retry count after 34",
       "cannot reach 10.0.0.9"},
      {"bootstrap.cc:9 NCCL WARN no device found matching exactly eth9, verify NCCL_OOB_NET_IFNAME", "no interface"},
      {"net.cc:9 NCCL WARN Error: network AWS Libfabric not found.", "the network that NCCL_NET asks for is not there"},
      {"net.cc:9 NCCL WARN Failed to initialize any NET plugin", "the network that NCCL_NET asks for is not there"},
      {"connect.cc:9 NCCL WARN NET/IB : Attempted to connect incompatible devices: [0]a:1/IB and [1]b:1/RoCE",
       "cannot be connected"}};
  for (const auto& [warning, said] : wordings)
    EXPECT_THAT(answer_to(fmt::format("n1:10:20 [0] {}\n", warning)).headline, HasSubstr(said)) << warning;
}

TEST(NcclLog, PeersAreCountedByWhatHappenedToThem) {
  const auto refused = [](int node, const char* peer) {
    return fmt::format("n{}:1:2 [0] socket.cc:9 NCCL WARN Connect to {}<4> failed : Connection refused\n", node, peer);
  };
  EXPECT_EQ(answer_to(refused(1, "10.0.0.9") + refused(2, "10.0.0.9")).headline,
            "two nodes cannot reach one peer, 10.0.0.9");
  const std::string late =
      "n3:1:2 [0] net_ib.cc:9 NCCL WARN NET/IB : Got completion from peer 10.0.0.5<4> with error 12, x\n";
  const Answer answer = answer_to(late + refused(1, "10.0.0.9") + refused(2, "10.0.0.9"));
  EXPECT_EQ(answer.headline, "n3 got no answer from 10.0.0.5");
}

TEST(NcclLog, AnUnknownWarningIsANote) {
  const Answer answer = answer_to("n1:1:2 [0] a.cc:9 NCCL WARN The frobnicator is stuck\n");
  EXPECT_THAT(answer.headline, HasSubstr("its warnings name no cause"));
  EXPECT_THAT(answer.notes, Contains(HasSubstr("The frobnicator is stuck")));
}

}  // namespace
}  // namespace harness::test
