#include "nccl/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/registry.h"
#include "log_files.h"

namespace harness::nccl {
namespace {

// Returns "+" honoured, "-" not honoured or "?" not confirmed, followed by the reason.
std::string verdict(const std::string& name, const std::string& value, const nccl::Observed& seen) {
  config::Settings settings;
  (name.starts_with("NCCL_") ? settings.env : settings.nccl)[name] = value;
  const nccl::Compliance verdict = nccl::check_compliance(config::nccl_requests(settings), seen);
  EXPECT_TRUE(verdict.not_honoured.empty() || verdict.not_confirmed.empty()) << name;
  std::string out = verdict.not_honoured.empty() && verdict.not_confirmed.empty() ? "+" : "";
  for (const auto& [mark, lines] : {std::pair{"- ", verdict.not_honoured}, {"? ", verdict.not_confirmed}}) {
    for (const std::string& line : lines) {
      const std::string head = name + "=" + value + ": ";
      EXPECT_TRUE(line.starts_with(head)) << line;
      out += (out.empty() ? "" : "; ") + std::string(mark) + line.substr(std::min(head.size(), line.size()));
    }
  }
  return out;
}

struct NcclHonoured : testing::Test {
  nccl::Observed ib = nccl::parse_log(nccl_log("v2.28_two_nodes_ib"));
  nccl::Observed loopback = nccl::parse_log(nccl_log("v2.28_loopback"));
  nccl::Observed newer = nccl::parse_log(nccl_log("v2.29_symmetric"));
  nccl::Observed v2_20 = nccl::parse_log(nccl_log("v2.20"));
  nccl::Observed nothing;
};

TEST_F(NcclHonoured, NothingAskedNothingJudged) {
  EXPECT_TRUE(nccl::check_compliance({}, ib).not_honoured.empty());
  EXPECT_TRUE(nccl::check_compliance({}, nothing).not_confirmed.empty());
}

TEST_F(NcclHonoured, Algorithm) {
  EXPECT_EQ(verdict("nccl_algo", "AllReduce:Tree,Ring", ib), "+");
  EXPECT_EQ(verdict("nccl_algo", "AllReduce:Ring", ib), "- NCCL ran AllReduce with Tree (1 call of 8 KiB to 8 KiB)");
  EXPECT_EQ(verdict("nccl_algo", "AllReduce:Tree", ib), "- NCCL ran AllReduce with Ring (2 calls of 25 MiB to 25 MiB)");
  EXPECT_EQ(verdict("nccl_algo", "^NVLS", ib), "- NCCL ran AllGather with NVLS (1 call of 1 MiB to 1 MiB)");
  EXPECT_EQ(verdict("nccl_algo", "^NVLS;AllGather:NVLS", ib), "+");
  EXPECT_EQ(verdict("nccl_algo", "^PAT", ib), "+");
  EXPECT_EQ(verdict("nccl_algo", "Broadcast:Ring", ib),
            "? NCCL's log shows no call whose algorithm this variable decides");
  EXPECT_EQ(verdict("nccl_algo", "Ring", nothing), "? NCCL's log shows no call whose algorithm this variable decides");
  EXPECT_EQ(verdict("nccl_algo", "AllGather:Ring", newer),
            "- NCCL ran AllGather with CopyEngine (1 call of 32 MiB to 32 MiB)");
  // A log without function names may hold calls of any function: only an algorithm that no function may use is wrong.
  EXPECT_EQ(verdict("nccl_algo", "AllReduce:Ring", v2_20), "+");
  EXPECT_EQ(verdict("nccl_algo", "Ring", v2_20), "- NCCL ran a collective with Tree (1 call of 512 B to 512 B)");
}

TEST_F(NcclHonoured, Protocol) {
  EXPECT_EQ(verdict("nccl_proto", "Simple", ib), "+");
  EXPECT_EQ(verdict("nccl_proto", "Simple", loopback), "- NCCL ran AllReduce with LL (1 call of 4 KiB to 4 KiB)");
  EXPECT_EQ(verdict("nccl_proto", "^LL,LL128", loopback), "- NCCL ran AllReduce with LL (1 call of 4 KiB to 4 KiB)");
  EXPECT_EQ(verdict("nccl_proto", "LL;ReduceScatter:Simple", loopback), "+");
  EXPECT_EQ(verdict("nccl_proto", "AllReduce:Simple", newer),
            "- NCCL ran AllReduce with Symmetric (1 call of 1 MiB to 1 MiB)");
}

TEST_F(NcclHonoured, Channels) {
  EXPECT_EQ(verdict("nccl_max_ctas", "8", ib), "+");
  EXPECT_EQ(verdict("nccl_max_ctas", "4", ib), "- NCCL ran AllGather of 1 MiB on 8 channels");
  nccl::Observed only_channels = ib;
  only_channels.calls.clear();
  EXPECT_EQ(verdict("nccl_max_ctas", "4", only_channels), "- a communicator has 8 channels for collectives");
  EXPECT_EQ(verdict("nccl_max_ctas", "0", loopback), "- NCCL_MAX_CTAS 0 is too low, leaving it set at -2147483648");
  EXPECT_EQ(verdict("nccl_max_ctas", "4", nothing), "? NCCL's log does not mention NCCL_MAX_CTAS");
  EXPECT_EQ(verdict("nccl_min_ctas", "8", ib), "+");
  EXPECT_EQ(verdict("nccl_min_ctas", "16", ib), "- a communicator has 8 channels for collectives");
  EXPECT_EQ(verdict("nccl_min_ctas", "16", nothing),
            "? NCCL's log does not say how many channels its communicators have");
}

TEST_F(NcclHonoured, NumbersByTheirEcho) {
  EXPECT_EQ(verdict("nccl_buffsize", "4194304", ib), "+");
  EXPECT_EQ(verdict("nccl_buffsize", "4 MiB", ib), "+");
  EXPECT_EQ(verdict("nccl_buffsize", "8 MiB", ib), "- NCCL says NCCL_BUFFSIZE is 4194304");
  EXPECT_EQ(verdict("nccl_buffsize", "8 MiB", loopback), "? NCCL's log does not mention NCCL_BUFFSIZE");
  EXPECT_EQ(verdict("NCCL_NTHREADS", "100", loopback), "- Invalid NCCL_NTHREADS 100 (must be a multiple of 32)");
  EXPECT_EQ(verdict("NCCL_NTHREADS", "256", ib), "? NCCL's log does not mention NCCL_NTHREADS");
  EXPECT_EQ(verdict("NCCL_CROSS_NIC", "1", loopback), "+");
  EXPECT_EQ(verdict("NCCL_CROSS_NIC", "0", loopback), "- NCCL says NCCL_CROSS_NIC is 1");
  // A single differing rank suffices.
  const nccl::Observed differing = nccl::parse_log(
      "a:1:1 [0] NCCL INFO NCCL_BUFFSIZE set by environment to 4.\nb:1:1 [0] NCCL INFO NCCL_BUFFSIZE set by "
      "environment to 8.\n");
  EXPECT_EQ(verdict("nccl_buffsize", "4", differing), "- NCCL says NCCL_BUFFSIZE is 8");
}

// NCCL reads hexadecimal numbers, and reports decimal ones.
TEST_F(NcclHonoured, NumbersInAnotherNotation) {
  const auto seen = nccl::parse_log("a:1:1 [0] NCCL INFO NCCL_LL_BUFFSIZE set by environment to 524288.\n");
  EXPECT_EQ(verdict("NCCL_LL_BUFFSIZE", "0x80000", seen), "+");
  EXPECT_EQ(verdict("NCCL_LL_BUFFSIZE", "0x40000", seen), "- NCCL says NCCL_LL_BUFFSIZE is 524288");
}

TEST_F(NcclHonoured, NvlsAndCollNet) {
  EXPECT_EQ(verdict("nccl_nvls", "1", ib), "+");
  EXPECT_EQ(verdict("nccl_nvls", "0", ib), "- NCCL ran AllGather with NVLS");
  EXPECT_EQ(verdict("nccl_nvls", "1", loopback), "- NCCL reports that NVLS is not available");
  nccl::Observed no_calls = ib;
  no_calls.calls.clear();
  EXPECT_EQ(verdict("nccl_nvls", "0", no_calls), "- NCCL set up NVLS");
  EXPECT_EQ(verdict("nccl_nvls", "0", nothing), "? NCCL's log does not mention NCCL_NVLS_ENABLE");
  EXPECT_EQ(verdict("nccl_collnet", "1", newer), "+");
  EXPECT_EQ(verdict("nccl_collnet", "0", newer), "- NCCL ran AllReduce with CollNetDirect");
  EXPECT_EQ(verdict("nccl_collnet", "1", loopback).substr(0, 58),
            "? NCCL accepted the setting but did not connect CollNet, w");
  EXPECT_EQ(verdict("nccl_collnet", "0", loopback), "- NCCL says NCCL_COLLNET_ENABLE is 1");
}

TEST_F(NcclHonoured, Levels) {
  EXPECT_EQ(verdict("nccl_p2p_level", "NVL", ib), "+");
  EXPECT_EQ(verdict("nccl_p2p_level", "SYS", ib), "- NCCL says NCCL_P2P_LEVEL is NVL");
  EXPECT_EQ(verdict("nccl_p2p_level", "LOC", ib), "- NCCL connected GPUs by P2P");
  EXPECT_EQ(verdict("nccl_p2p_level", "NVL", loopback), "? NCCL's log does not mention NCCL_P2P_LEVEL");
  const nccl::Observed disabled = nccl::parse_log("a:1:1 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1\n");
  EXPECT_EQ(verdict("nccl_p2p_level", "NVL", disabled), "- NCCL_P2P_DISABLE is set, so NCCL does not read the level");
  EXPECT_EQ(verdict("nccl_net_gdr_level", "SYS", ib), "+");
  EXPECT_EQ(verdict("nccl_net_gdr_level", "PIX", ib), "- NCCL says NCCL_NET_GDR_LEVEL is SYS");
  EXPECT_EQ(verdict("nccl_net_gdr_level", "LOC", ib), "- NCCL uses GPUDirect RDMA");
  EXPECT_EQ(verdict("nccl_net_gdr_level", "LOC", loopback), "+");
  EXPECT_EQ(verdict("nccl_net_gdr_level", "SYS", loopback), "- NCCL's network is Socket, which has no GPUDirect RDMA");
  const nccl::Observed no_module = nccl::parse_log(
      "a:1:1 [0] NCCL INFO Using network IB\na:1:1 [0] NCCL INFO NCCL_NET_GDR_LEVEL set by environment to SYS\n"
      "a:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0\n");
  EXPECT_EQ(verdict("nccl_net_gdr_level", "SYS", no_module).substr(0, 34), "- NCCL does not use GPUDirect RDMA");
}

TEST_F(NcclHonoured, Networks) {
  EXPECT_EQ(verdict("NCCL_IB_DISABLE", "1", loopback), "+");
  EXPECT_EQ(verdict("NCCL_IB_DISABLE", "true", ib), "- NCCL's network is IB");
  EXPECT_EQ(verdict("NCCL_IB_DISABLE", "0", ib), "+");
  EXPECT_EQ(verdict("NCCL_IB_DISABLE", "0", loopback), "- NCCL says NCCL_IB_DISABLE is 1");
  const nccl::Observed plug_in = nccl::parse_log(
      "a:1:1 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 0.\na:1:1 [0] NCCL INFO Using network AWS "
      "Libfabric\n");
  EXPECT_EQ(verdict("NCCL_IB_DISABLE", "0", plug_in), "+");
  EXPECT_EQ(verdict("NCCL_IB_DISABLE", "1", nothing), "? NCCL's log does not say which network it uses");
  EXPECT_EQ(verdict("NCCL_IB_QPS_PER_CONNECTION", "4", ib), "? NCCL's log does not mention NCCL_IB_QPS_PER_CONNECTION");
  EXPECT_EQ(verdict("NCCL_IB_QPS_PER_CONNECTION", "4", loopback), "- NCCL's network is Socket, not IB");
  const nccl::Observed qps = nccl::parse_log(
      "a:1:1 [0] NCCL INFO Using network IB\na:1:1 [0] NCCL INFO NCCL_IB_QPS_PER_CONNECTION set by environment to 4.\n"
      "a:1:1 [0] NCCL INFO NCCL_IB_GID_INDEX set by environment to 3.\n");
  EXPECT_EQ(verdict("NCCL_IB_QPS_PER_CONNECTION", "4", qps), "+");
  EXPECT_EQ(verdict("NCCL_IB_GID_INDEX", "3", qps), "+");
  EXPECT_EQ(verdict("NCCL_IB_GID_INDEX", "1", qps), "- NCCL says NCCL_IB_GID_INDEX is 3");
  EXPECT_EQ(verdict("NCCL_NSOCKS_PERTHREAD", "4", ib), "- NCCL's network is IB, not Socket");
  EXPECT_EQ(verdict("NCCL_IB_HCA", "mlx5_0,mlx5_1", ib), "+");
  EXPECT_EQ(verdict("NCCL_IB_HCA", "mlx5_0", ib), "- NCCL says NCCL_IB_HCA is mlx5_0,mlx5_1");
  EXPECT_EQ(verdict("NCCL_IB_HCA", "mlx5_0", loopback), "- NCCL's network is Socket, not IB");
  EXPECT_EQ(verdict("NCCL_SOCKET_IFNAME", "ib", ib), "+");
  EXPECT_EQ(verdict("NCCL_SOCKET_IFNAME", "eth0", nothing), "? NCCL's log does not mention NCCL_SOCKET_IFNAME");
}

TEST_F(NcclHonoured, NamesOfTheVariableEnv) {
  EXPECT_EQ(verdict("NCCL_BUFFSIZE", "4194304", ib), "+");
  EXPECT_EQ(verdict("NCCL_BUFFSIZE", "1048576", ib), "- NCCL says NCCL_BUFFSIZE is 4194304");
  EXPECT_EQ(verdict("NCCL_ALGO", "allreduce:ring", ib).substr(0, 33), "- NCCL ran AllReduce with Tree (1");
  EXPECT_EQ(verdict("NCCL_ALGO", "Rong", ib).substr(0, 14), "? found 'Rong'");
  EXPECT_EQ(verdict("NCCL_HOSTID", "x", ib), "? NCCL's log does not mention NCCL_HOSTID");
  config::Settings settings;
  settings.env = {{"NCCL_DEBUG", "INFO"}, {"UCX_TLS", "rc"}};  // NCCL does not echo these
  EXPECT_TRUE(nccl::check_compliance(config::nccl_requests(settings), ib).not_confirmed.empty());
}

}  // namespace
}  // namespace harness::nccl
