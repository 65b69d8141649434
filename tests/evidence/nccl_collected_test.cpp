// NCCL's logs as launchers, collectors and people pass them on: what is missing there is no fault of the job.
#include <gmock/gmock.h>

#include <string>

#include "base/text.h"
#include "evidence/answer.h"
#include "evidence/expectations.h"

namespace harness::test {
namespace {

using evidence::Answer;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Ray prints one of the lines that differ in numbers alone, and counts the others.
TEST(CollectedLog, RanksThatRayLeftOutAreNotMissed) {
  const std::string first = "(Worker pid=21) n1:21:31 [0] NCCL INFO ",
                    later = "(Worker pid=37, ip=10.0.0.2) n2:37:47 [3] NCCL INFO ",
                    repeated = " [repeated 7x across cluster]\n";
  std::string log;
  for (const std::string message :
       {"NCCL_IB_TIMEOUT set by environment to 22.", "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB e:1",
        "Using network IB", "ncclCommInitRank comm 0x5 rank 0 nranks 8 cudaDev 0 commId 0xab - Init START"})
    log += first + message + "\n" + later + message + repeated;
  log += later + "ncclCommInitRank comm 0x6 rank 7 nranks 8 cudaDev 3 commId 0xab - Init START" + repeated + first +
         "ncclCommInitRank comm 0x5 rank 0 nranks 8 cudaDev 0 commId 0xab - Init COMPLETE\n";
  const Answer answer = answer_to(log);
  EXPECT_THAT(answer.problems, IsEmpty());
  EXPECT_THAT(answer.notes, ElementsAre(HasSubstr("RAY_DEDUP_LOGS=0"), HasSubstr("no connection over the network")));
}

TEST(CollectedLog, TheEndOfAnotherLineIsNoPartOfTheHost) {
  const std::string line = "n1:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0\n";
  for (const char* before : {"  0%|          | 0/100 [00:00<?, ?it/s]", " number of nan iterations:   0 |"})
    EXPECT_EQ(answer_to(line + before + line).headline, "n1 does not use GPUDirect RDMA") << before;
  EXPECT_EQ(answer_to("[n1]" + line.substr(2)).headline, "[n1] does not use GPUDirect RDMA");
}

// People cut the host off before they publish a log. Ranks of several hosts then look like those of one.
TEST(CollectedLog, LinesThatLostTheirHostAreRead) {
  for (const char* before : {"", " ", "(Worker pid=21) ", "2026-12-04 05:27:39 "}) {
    std::string log;
    for (const char* message : {"NET/IB : No device found.", "Using network Socket",
                                "ncclCommInitRank comm 0x5 rank 0 nranks 2 cudaDev 0 commId 0xab - Init START",
                                "Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0",
                                "ncclCommInitRank comm 0x5 rank 0 nranks 2 cudaDev 0 commId 0xab - Init COMPLETE",
                                "ncclCommInitRank comm 0x5 rank 1 nranks 2 cudaDev 0 commId 0xab - Init START",
                                "ncclCommInitRank comm 0x5 rank 1 nranks 2 cudaDev 0 commId 0xab - Init COMPLETE"})
      log += fmt::format("{}[0] NCCL INFO {}\n", before, message);
    const Answer answer = answer_to(log);
    EXPECT_THAT(answer.problems, ElementsAre(HasSubstr("NCCL runs over TCP sockets"))) << before;
    EXPECT_THAT(answer.notes, testing::Contains(HasSubstr("lost their host"))) << before;
  }
  EXPECT_EQ(answer_to("[0] transport/nvls.cc:9 NCCL WARN Cuda failure 1 'invalid argument'\n").headline,
            "the fabric manager or the NVLink switches of the log's host are not set up");
}

// Without libibverbs NCCL does not look for adapters, and does not say that there is none.
TEST(CollectedLog, AnImageWithoutLibibverbsIsTheReasonForSockets) {
  for (const char* mark : {"NCCL INFO ", "misc/ibvwrap.cc:63 NCCL WARN "}) {
    std::string log;
    for (const char* node : {"n1", "n2"})
      log += fmt::format(
          "{0}:1:2 [0] {1}Failed to open libibverbs.so[.1]\n{0}:1:2 [0] NCCL INFO NET/Socket : Using "
          "[0]eth0:10.0.0.1<0>\n"
          "{0}:1:2 [0] NCCL INFO Using network Socket\n",
          node, mark);
    EXPECT_EQ(answer_to(log).headline, "NCCL runs over TCP sockets: libibverbs could not be opened") << mark;
  }
}

// aws-ofi-nccl gives each process a topology by the number of an open file.
TEST(CollectedLog, RanksDoNotDifferInTheNumberOfAFile) {
  std::string log;
  for (int rank = 0; rank < 2; ++rank)
    log += fmt::format("n1:1{0}:2 [{0}] NCCL INFO NCCL_TOPO_FILE set by environment to /proc/self/fd/15{0}\n", rank);
  EXPECT_THAT(answer_to(log).problems, IsEmpty());
}

// Without a communicator of all ranks, one within the node may be as large as one that spans nodes.
TEST(CollectedLog, ACommunicatorThatSpansNodesProvesOtherNodes) {
  std::string log = "n1:1:2 [0] NCCL INFO NET/IB : No device found.\nn1:1:2 [0] NCCL INFO Using network Socket\n";
  for (const auto& [id, nodes] : {std::pair("0xaa", 1), {"0xbb", 2}})
    log += fmt::format(
        "n1:1:2 [0] NCCL INFO comm 0x5 rank 0 nranks 2 cudaDev 0 commId {} - Init START\n"
        "n1:1:2 [0] NCCL INFO comm 0x5 rank 0 nRanks 2 nNodes {} localRanks {} localRank 0 MNNVL 0\n",
        id, nodes, 2 / nodes);
  EXPECT_THAT(answer_to(log).headline, HasSubstr("NCCL runs over TCP sockets"));
}

// Hosts that multi-node NVLink joins are one node to NCCL, and use no network.
TEST(CollectedLog, SocketsDoNotMatterWhereNvlinkJoinsTheHosts) {
  const auto log = [](int nodes) {
    std::string text;
    for (int host = 0; host < 2; ++host)
      text += fmt::format(
          "n{0}:1:2 [0] NCCL INFO NET/IB : No device found.\nn{0}:1:2 [0] NCCL INFO NET/Socket : Using "
          "[0]eth0:10.0.0.1<0>\nn{0}:1:2 [0] NCCL INFO Using network Socket\nn{0}:1:2 [0] NCCL INFO GPU Direct RDMA "
          "Disabled for HCA 0 'eth0'\nn{0}:1:2 [0] NCCL INFO comm 0x5 rank {0} nRanks 2 nNodes {1} localRanks {2} "
          "localRank 0 MNNVL {3}\n",
          host, nodes, 2 / nodes, 2 - nodes);
    return answer_to(text);
  };
  EXPECT_THAT(log(1).problems, IsEmpty());
  EXPECT_THAT(log(1).notes, testing::Contains(HasSubstr("NVLink joins all ranks")));
  EXPECT_THAT(log(2).problems, ElementsAre(HasSubstr("NCCL runs over TCP sockets")));
}

// Two ranks write at once: the end of a line is missing, and the other's stands on it.
TEST(CollectedLog, ALineOnThatOfAnotherRankBelongsToThatRank) {
  const Answer answer = answer_to(
      "n1:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB e:1\n"
      "n2:3:4 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB e:1\n"
      "n1:1:2 [0] NCCL INFO Using network IBn2:3:4 [0] NCCL INFO Using network IB\n"
      "n1:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMAn2:3:4 [0] NCCL INFO Channel 00/0 : "
      "1[0] -> 0[0] [send] via NET/IB/0/GDRDMA\n"
      "NCCL version 2.21.5+cuda12.4n2:3:4 [0] NCCL INFO cudaDriverVersion 12040\n");
  EXPECT_THAT(answer.problems, IsEmpty());
  EXPECT_EQ(fact(answer, "network"), "IB, 1 adapter");
  EXPECT_EQ(fact(answer, "gpu_direct"), "n1 and n2: sends with it");
  EXPECT_EQ(fact(answer, "nccl"), "2.21.5");
}

TEST(CollectedLog, CollectorsAndPagesChangeNoHostAndNoArrow) {
  const std::string log[] = {"NET/IB : No device found.", "Using network Socket",
                             "Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0"};
  const auto with = [&](const char* pattern) {
    std::string text;
    for (const char* host : {"n1", "n2"})
      for (int i = 0; i < 3; ++i) text += fmt::format(fmt::runtime(pattern), 17 * i, host, log[i]) + '\n';
    return answer_to(text);
  };
  const Answer plain = with("{1}:1:2 [0] NCCL INFO {2}");
  for (const char* pattern :
       {"1700000{0},\"{1}:1:2 [0] NCCL INFO {2}\"", "Tue Feb 11 10:00:{0} 2025[1,0]<stdout>:{1}:1:2 [0] NCCL INFO {2}",
        "{{\"log\":\"{1}:1:2 [0] NCCL INFO {2}\\n\",\"stream\":\"stdout\",\"time\":\"2026-01-01T00:00:{0}Z\"}}",
        "2026-01-01T00:00:00.{0}Z stdout F {1}:1:2 [0] NCCL INFO {2}", "app-1  | {1}:1:2 [0] NCCL INFO {2}"}) {
    EXPECT_EQ(with(pattern).headline, plain.headline) << pattern;
    EXPECT_EQ(fact(with(pattern), "hosts"), "2") << pattern;
    EXPECT_EQ(fact(with(pattern), "transports"), "NET/Socket 2 (senders)") << pattern;
  }
  EXPECT_EQ(fact(answer_to("n1:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -&gt; 1[0] [send] via NET/IB/0\n"), "transports"),
            "NET/IB 1 (senders)");
}

// PyTorch repeats NCCL's warning behind its own error, with or without NCCL_DEBUG.
TEST(CollectedLog, TheLastErrorThatPyTorchPrintsIsACause) {
  const std::string error = "DistBackendError: NCCL error in: NCCLUtils.hpp:268, NCCL version 2.21.5\n",
                    said = "socketStartConnect: Connect to 10.0.0.7<4> failed : No route to host\n";
  const auto headline = [](const std::string& text) {
    const auto answers = answers_to({{"x.log", text}});
    return answers.back().headline;
  };
  EXPECT_EQ(headline(error + "Last error:\n" + said), "a rank cannot reach 10.0.0.7");
  EXPECT_EQ(headline("[rank3]: " + error + "[rank3]: Last error: \n[rank3]: " + said), "a rank cannot reach 10.0.0.7");
  EXPECT_EQ(headline(error + "Last error:\nTraceback (most recent call last):\n"), "the job failed: NCCL error");
  EXPECT_THAT(error_of([&] { headline("downloading\nLast error: Connection reset by peer\n"); }),
              HasSubstr("not recognised"));
  const auto both =
      answers_to({{"x.log", "n1:1:2 [0] misc/socket.cc:9 NCCL WARN " + said + error + "Last error:\n" + said}});
  EXPECT_EQ(both.back().headline, "n1 cannot reach 10.0.0.7");
  EXPECT_EQ(fact(both.back(), "warnings"), "connect failed once");
}

TEST(CollectedLog, WarningsAreOfTheirCause) {
  const auto headline = [](const std::string& place, const std::string& message) {
    return answer_to(fmt::format("n1:1:2 [0] {} NCCL WARN {}\n", place, message)).headline;
  };
  EXPECT_THAT(headline("misc/socket.cc:4", "socketFinalizeAccept: wrong type 4 != 3"), HasSubstr("different networks"));
  EXPECT_THAT(headline("misc/socket.cc:4", "socketFinalizeAccept: wrong type 1 != 2"), HasSubstr("not this job"));
  EXPECT_THAT(
      headline("transport/nvls.cc:9", "Cuda failure 401 'the operation cannot be performed in the present state'"),
      HasSubstr("NVLink switches of n1"));
  EXPECT_EQ(headline("misc/socket.cc:4", "socketStartConnect: Connect to fe80::9%ib1<17> failed : Connection refused"),
            "n1 cannot reach fe80::9%ib1");
  for (const char* message : {"NET/IB : Unable to open device erdma_1",
                              "Detected mixed local Net device counts across ranks (min 1, max 2). Set X=1"})
    EXPECT_THAT(headline("transport/net_ib.cc:9", message), HasSubstr("cannot be used"));
  EXPECT_THAT(headline("enqueue.cc:9", "No algorithm/protocol available for function AllReduce"),
              HasSubstr("NCCL_ALGO or NCCL_PROTO"));
  EXPECT_THAT(headline("init.cc:9", "MNNVL (cliqueSize 8) is available but not supported on this system."),
              HasSubstr("IMEX"));
}

TEST(CollectedLog, LibfabricThatDoesNotStartIsTheReasonForSockets) {
  std::string log;
  for (const char* node : {"n1", "n2"})
    log += fmt::format(
        "{0}:1:2 [0] ofi_init:1304 NCCL WARN NET/OFI Only EFA provider is supported\n{0}:1:2 [0] NCCL INFO NET/IB : No "
        "device found.\n{0}:1:2 [0] NCCL INFO Using network Socket\n",
        node);
  EXPECT_THAT(answer_to(log).problems, testing::Contains(HasSubstr("TCP sockets: libfabric (aws-ofi-nccl) did not")));
}

TEST(CollectedLog, HostsWithoutNvlinkSharpAreTold) {
  const auto log = [](const char* on_second) {
    return answer_to(
        fmt::format("n1:1:2 [0] NCCL INFO NVLS multicast support is not available on dev 0\n"
                    "n2:1:2 [0] NCCL INFO NVLS multicast support is {}available on dev 0\n",
                    on_second));
  };
  EXPECT_THAT(log("").problems, ElementsAre(HasSubstr("no NVLink SHARP (NVLS) on n1")));
  EXPECT_THAT(log("not ").problems, IsEmpty());
  EXPECT_THAT(log("not ").notes, testing::Contains(HasSubstr("no NVLink SHARP (NVLS) on n1 and n2")));
}

// A part of a log proves no number of hosts.
TEST(CollectedLog, HostsOfALogThatLacksRanksAreNotAll) {
  std::string log;
  for (const char* state : {"START", "COMPLETE"})
    log += fmt::format("n1:1:2 [6] NCCL INFO comm 0x5 rank 6 nranks 16 cudaDev 6 commId 0xab - Init {}\n", state);
  const Answer answer = answer_to(log);
  EXPECT_THAT(answer.headline, testing::StartsWith("16 ranks, of which this log has 1 rank"));
  EXPECT_THAT(answer.next, ElementsAre(HasSubstr("doctor --stages static")));
}

}  // namespace
}  // namespace harness::test
