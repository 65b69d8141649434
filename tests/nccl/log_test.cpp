#include "nccl/log.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "log_files.h"
#include "support/files.h"

namespace harness::nccl {
namespace {

std::vector<std::string> lines_of(const nccl::Observed& observed) {
  std::vector<std::string> lines;
  for (const nccl::Call& c : observed.calls) {
    lines.push_back(c.function + " " + std::to_string(c.bytes) + " " + c.algorithm + " " + c.protocol + " " +
                    std::to_string(c.first_channel) + ".." + std::to_string(c.last_channel) + " x" +
                    std::to_string(c.calls));
  }
  return lines;
}
using Lines = std::vector<std::string>;

TEST(NcclLog, TwoNodesOverInfiniBand) {
  const nccl::Observed seen = nccl::parse_log(nccl_log("v2.28_two_nodes_ib"));
  EXPECT_EQ(lines_of(seen), (Lines{"AllGather 1048576 NVLS Simple 0..7 x1", "AllReduce 8192 Tree Simple 0..0 x1",
                                   "AllReduce 26214400 Ring Simple 0..7 x2"}));
  EXPECT_EQ(seen.fact("version"), "2.28.9+cuda13.0");
  EXPECT_EQ(seen.fact("network"), "IB");
  EXPECT_EQ(seen.fact("network_devices"), "mlx5_0:1/IB mlx5_1:1/IB");
  EXPECT_EQ(seen.fact("bootstrap_interface"), "ib0");
  EXPECT_EQ(seen.fact("channels"),
            "8 coll, 8 collnet, 16 nvls, 8 p2p, 2 p2p per peer | 8 coll, 8 collnet, 16 nvls, 8 p2p, 8 p2p per peer");
  EXPECT_EQ(seen.fact("gpu_direct"), "enabled");
  EXPECT_EQ(seen.fact("nvls"), "available");
  EXPECT_EQ(seen.fact("transport P2P/CUMEM/read"), "2");
  EXPECT_EQ(seen.fact("transport NET/IB/1/GDRDMA"), "2");
  EXPECT_EQ(seen.fact("transport NET/IB/0/GDRDMA(PCI)/Shared"), "1");
  EXPECT_EQ(seen.fact("transport NET/IB/0/GDRDMA"), "");  // only received
  EXPECT_EQ(seen.fact("transport SHM/direct/direct"), "1");
  EXPECT_EQ(seen.fact("pxn"), "1");
  EXPECT_EQ(seen.fact("NCCL_BUFFSIZE"), "4194304");
  EXPECT_EQ(seen.fact("NCCL_SOCKET_IFNAME"), "ib");
  EXPECT_EQ(seen.fact("NCCL_ALGO"), "AllReduce:Tree,Ring");
  EXPECT_EQ(seen.fact("NCCL_IB_HCA"), "mlx5_0,mlx5_1");
  EXPECT_EQ(seen.fact("NCCL_P2P_LEVEL"), "NVL");
  EXPECT_TRUE(seen.warnings.empty());
}

TEST(NcclLog, KeepsNoMoreThanItIsGivenRoomFor) {
  LogReader reader(4096);
  for (int i = 0; i < 5000; ++i) reader.line("NCCL INFO NCCL_X" + std::to_string(i) + " set by environment to 1");
  EXPECT_LT(reader.finish().facts.size(), 100u);
}

TEST(NcclLog, LoopbackWithRefusedSettingsAndWarnings) {
  const nccl::Observed seen = nccl::parse_log(nccl_log("v2.28_loopback"));
  EXPECT_EQ(lines_of(seen), (Lines{"AllReduce 4096 Ring LL 0..0 x1", "ReduceScatter 4194304 PAT Simple 0..1 x1"}));
  EXPECT_EQ(seen.fact("version"), "2.28.9+cuda13.0");
  EXPECT_EQ(seen.fact("network"), "Socket");
  EXPECT_EQ(seen.fact("network_devices"), "lo");
  EXPECT_EQ(seen.fact("gpu_direct"), "disabled");
  EXPECT_EQ(seen.fact("gpu_direct_send"), "disabled");
  EXPECT_EQ(seen.fact("nvls"), "not available");
  EXPECT_EQ(seen.fact("transport NET/Socket/0"), "2");
  EXPECT_EQ(seen.fact("NCCL_HOSTID"), "rank0 | rank1");
  EXPECT_EQ(seen.fact("refused NCCL_MAX_CTAS"), "NCCL_MAX_CTAS 0 is too low, leaving it set at -2147483648");
  EXPECT_EQ(seen.fact("refused NCCL_NTHREADS"), "Invalid NCCL_NTHREADS 100 (must be a multiple of 32)");
  EXPECT_EQ(seen.fact("refused NCCL_LL_BUFFSIZE"),
            "Invalid value 99999999999999999999 for NCCL_LL_BUFFSIZE, using default -2.");
  EXPECT_EQ(seen.warnings, Lines{"socketProgress: Connection closed by remote peer localhost<45678>"});
}

TEST(NcclLog, OlderAndNewerFormats) {
  const nccl::Observed v2_18 = nccl::parse_log(nccl_log("v2.18"));
  EXPECT_TRUE(v2_18.calls.empty());
  EXPECT_EQ(v2_18.fact("version"), "2.18.3+cuda12.2");
  EXPECT_EQ(v2_18.fact("bootstrap_interface"), "eth0");
  EXPECT_EQ(v2_18.fact("network_devices"), "none (IB) | eth0 eth1");
  EXPECT_EQ(v2_18.fact("channels"), "12 coll, 0 nvls, 16 p2p, 16 p2p per peer");
  EXPECT_EQ(v2_18.fact("NCCL_COLLNET_ENABLE"), "1");
  EXPECT_EQ(v2_18.fact("transport P2P/IPC/read"), "1");
  EXPECT_EQ(v2_18.fact("transport P2P/indirect"), "1");
  EXPECT_EQ(v2_18.fact("transport P2P/direct pointer/read"), "1");
  EXPECT_EQ(lines_of(nccl::parse_log(nccl_log("v2.20"))),
            (Lines{" 512 Tree LL -1..-1 x1", " 4194304 Ring Simple -1..-1 x2"}));
  EXPECT_EQ(lines_of(nccl::parse_log(nccl_log("v2.23"))),
            (Lines{"AllReduce 4194304 NVLSTree Simple -1..-1 x1", "Broadcast 64 Ring LL128 -1..-1 x1",
                   "ReduceScatter 65536 PAT Simple -1..-1 x1"}));
  const std::string refused = "Invalid NCCL_NTHREADS 100 (must be a multiple of 32)";
  EXPECT_EQ(nccl::parse_log("\nhost:1:1 [0] graph/tuning.cc:22 NCCL WARN " + refused).fact("refused NCCL_NTHREADS"),
            refused);
  const nccl::Observed newer = nccl::parse_log(nccl_log("v2.29_symmetric"));
  EXPECT_EQ(lines_of(newer),
            (Lines{"AllGather 33554432 CopyEngine  -1..-1 x1", "AllReduce 1024 CollNetDirect Simple 0..3 x1",
                   "AllReduce 2048 CollNetChain Simple 0..3 x1", "AllReduce 4096 NVLSTree Simple 0..3 x1",
                   "AllReduce 1048576 Symmetric AllReduce_AGxLL_R 0..15 x1"}));
  EXPECT_EQ(newer.fact("transport COLLNET/SHARP/0/GDRDMA"), "1");
}

TEST(NcclLog, PacketsOfPorts) {
  const nccl::Observed seen = nccl::parse_log(
      "n1:1:1 [0] NCCL INFO NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 260 mtu 5 query_ece={supported=1} GID 3 (0/1)\n"
      "n1:1:1 [0] NCCL INFO NET/IB: NCCL MergedDev 1 IbDev 2 Port 1 qpn 261 mtu 3 LID 17 subnet-prefix 1  FLID 0\n"
      "n1:1:1 [0] NCCL INFO NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 262 mtu 77 LID 17\n"
      "n1:1:1 [0] NCCL INFO NET/IB: IbDev 3 set mtu somewhere\n");
  EXPECT_EQ(seen.fact("ib_mtu"), "4096 | 1024");
}

TEST(NcclLog, CarriageReturnsChangeNothing) {
  const std::string text = nccl_log("v2.28_two_nodes_ib");
  std::string dos;
  for (const char c : text) dos += c == '\n' ? std::string("\r\n") : std::string(1, c);
  const nccl::Observed plain = nccl::parse_log(text), crlf = nccl::parse_log(dos);
  EXPECT_EQ(lines_of(plain), lines_of(crlf));
  EXPECT_EQ(plain.facts, crlf.facts);
}

TEST(NcclLog, LinesWrittenIntoEachOther) {
  const nccl::Observed seen = nccl::parse_log(
      "n1:1:1 [0] NCCL INFO Using network IBn2:22:22 [1] NCCL INFO NCCL_BUFFSIZE set by environment to 65536.\n"
      "n1:1:1 [0] NCCL INFO AllReduce: 8 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}n2:22:22 [1] NCCL INFO x\n");
  EXPECT_EQ(seen.fact("NCCL_BUFFSIZE"), "65536");
  EXPECT_EQ(lines_of(seen), Lines{"AllReduce 8 Ring LL 0..1 x1"});
}

TEST(NcclLog, WhatIsCutOffOrForeignDoesNotCount) {
  const std::string call =
      "n:1:1 [0] NCCL INFO AllReduce: 1048576 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..7}";
  EXPECT_EQ(nccl::parse_log(call).calls.size(), 1u);
  for (std::size_t length = 0; length < call.size(); ++length) {
    EXPECT_TRUE(nccl::parse_log(call.substr(0, length)).calls.empty()) << call.substr(0, length);
  }
  EXPECT_TRUE(
      nccl::parse_log("n:1:1 [0] 1.0 enqueue.cc:9 NCCL TRACE 8 Bytes -> Algo 1 proto 2 time 3.0\n").calls.empty());
  EXPECT_TRUE(nccl::parse_log("loss 3.2, network ok\nAllReduce: 8 Bytes -> Algo RING proto LL time 1\n").calls.empty());
  EXPECT_TRUE(nccl::parse_log("n:1:1 [0] NCCL INFO NCCL_ALGO was set to Ring.\n").facts.empty());
}

TEST(NcclLog, KeepsTheFirstTwentyWarnings) {
  std::string text;
  for (int i = 0; i < 30; ++i) text += "n:1:1 [0] net.cc:1 NCCL WARN trouble " + std::to_string(i) + "\n";
  const nccl::Observed seen = nccl::parse_log(text);
  ASSERT_EQ(seen.warnings.size(), 20u);
  EXPECT_EQ(seen.warnings.back(), "trouble 19");
}

// Any bytes: no exception is thrown, and only printable text reaches the results.
TEST(NcclLog, DamagedTextsAreRead) {
  std::mt19937 random(3);
  std::vector<std::string> texts;
  for (const char* name : {"v2.28_two_nodes_ib", "v2.28_loopback", "v2.18", "v2.20", "v2.23", "v2.29_symmetric"}) {
    texts.push_back(nccl_log(name));
  }
  const auto printable = [](const std::string& text) {
    return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
  };
  for (int round = 0; round < 600; ++round) {
    std::string text = texts[random() % texts.size()];
    text.resize(random() % (text.size() + 1));
    for (unsigned flips = random() % 40; flips > 0 && !text.empty(); --flips) {
      text[random() % text.size()] = static_cast<char>(random() % 3 == 0 ? '\n' : random() % 256);
    }
    const nccl::Observed seen = nccl::parse_log(text);
    for (const auto& [name, value] : seen.facts) ASSERT_TRUE(printable(name) && printable(value)) << value;
    for (const std::string& warning : seen.warnings) ASSERT_TRUE(printable(warning));
    for (const nccl::Call& call : seen.calls) {
      ASSERT_TRUE(printable(call.function + call.algorithm + call.protocol));
      ASSERT_GE(call.bytes, 0);
    }
  }
}

// Under a predictable name, another user could plant a file that would be read as NCCL's log.
TEST(LogFile, IsWhereNobodyElseMayLookAndIsGoneAfterwards) {
  const test::TemporaryFolder folder;
  ::setenv("TMPDIR", folder.path().c_str(), 1);
  {
    const LogFile first, second;
    const std::filesystem::path path = std::getenv("NCCL_DEBUG_FILE");
    struct stat status {};
    ASSERT_EQ(::stat(path.parent_path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700u);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 2);
    std::ofstream(path) << "NCCL INFO";
    EXPECT_EQ(second.take(4), "NCCL");
    EXPECT_FALSE(std::filesystem::exists(path)) << "a worker ends without destructors";
    EXPECT_EQ(second.take(4), "");
    std::ofstream(path) << "more";
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  ::setenv("TMPDIR", "/proc/self", 1);
  EXPECT_EQ(LogFile().take(4), "") << "without a place for it there is no log";
  ::unsetenv("TMPDIR");
}

}  // namespace
}  // namespace harness::nccl
