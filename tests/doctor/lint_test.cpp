// Settings of NCCL: names, values, lists.
#include <gtest/gtest.h>

#include <map>

#include "base/text.h"
#include "doctor/check.h"
#include "nccl/values.h"
#include "node_fixture.h"

namespace harness::doctor {
namespace {

using Lines = std::vector<std::string>;

// Returns the findings on a node whose ranks have these settings.
Lines told_with(Node node, const NameValues& settings) {
  for (Rank& rank : node.ranks) {
    for (const auto& [name, value] : settings) rank.facts.set("env/" + name, value);
  }
  return test::worth_reading(diagnose({node}));
}
Lines told_with(const test::NodeTree& tree, const NameValues& settings) {
  return told_with(tree.node(8, test::healthy_gpus()), settings);
}
// The same on a healthy node of InfiniBand or RoCE.
Lines told(const NameValues& settings, const std::string& layer = "InfiniBand") {
  static std::map<std::string, Node> healthy;
  if (!healthy.contains(layer)) healthy[layer] = test::Dgx("dgx01", layer).node(8, test::healthy_gpus());
  return told_with(healthy.at(layer), settings);
}

// Container images, build systems, PyTorch and plug-ins set or read these names: a strict gate must not stop them.
TEST(Lint, NamesThatOthersReadAreNoFinding) {
  NameValues all;
  for (const nccl::ForeignName& row : nccl::foreign_names()) {
    if (!row.names.starts_with("NCCL_") || row.owner.empty()) continue;
    for (const std::string_view name : split(row.names, ' '))
      all.emplace_back(std::string(name) + (row.is_prefix() ? "SOMETHING" : ""), "1");
  }
  EXPECT_GT(all.size(), 20u);
  EXPECT_EQ(told(all), Lines{});
}

// The images of two nodes may differ in descriptive variables, but not in those that affect communication.
TEST(Lint, NodesMayDifferInNamesThatNobodyReads) {
  std::vector<Node> nodes{test::healthy_node(), test::healthy_node("dgx02")};
  for (Rank& rank : nodes[1].ranks) rank.facts.set("env/NCCL_VERSION", "2.27.3");
  EXPECT_EQ(test::worth_reading(diagnose(nodes)), Lines{});
  for (Rank& rank : nodes[1].ranks) rank.facts.set("env/NCCL_FASTRAK_NUM_FLOWS", "2");
  EXPECT_EQ(test::worth_reading(diagnose(nodes)).size(), 2u);  // without a majority, both
}

TEST(Lint, ValuesThatNcclMisreads) {
  EXPECT_EQ(
      told({{"NCCL_IB_TIMEOUT", "22s"}}),
      Lines{"warn env.values: NCCL_IB_TIMEOUT=22s: NCCL expects a plain whole number and would silently read this as "
            "22"});
  const Lines level = told({{"NCCL_NET_GDR_LEVEL", "5"}});
  ASSERT_EQ(level.size(), 1u);
  EXPECT_NE(level[0].find("5 is SYS, not PXB"), std::string::npos) << level[0];
  EXPECT_EQ(told({{"NCCL_DEBUG", "warning"}}).size(), 1u);
}

// What a value costs depends on what NCCL reads, not on what is written.
TEST(Lint, AValueThatNcclReadsAsOffCostsNothing) {
  const std::string misread = "warn env.values: NCCL_IB_DISABLE=";
  EXPECT_EQ(told({{"NCCL_IB_DISABLE", "False"}}),
            Lines{misread + "False: NCCL expects a plain whole number and would silently read this as 0"});
  EXPECT_EQ(told({{"NCCL_IB_DISABLE", ""}}), Lines{misread + ": NCCL would use its default"});
  EXPECT_EQ(told({{"NCCL_IB_DISABLE", "1 "}, {"NCCL_SOCKET_NTHREADS", "4"}}).size(), 2u);  // it is on, and misspelt
  EXPECT_EQ(told({{"NCCL_P2P_LEVEL", "LOC"}}),
            Lines{"warn env.debugging: NCCL_P2P_LEVEL=LOC: GPUs of a node exchange through host memory"});
}

TEST(Lint, ANetworkOfAPluginNeedsThePlugin) {
  const std::string found = "warn nccl.plugin_file: NCCL finds no plugin (libnccl-net.so), which NCCL_NET=";
  for (const std::string name : {"IBext", "AWS Libfabric"})
    EXPECT_EQ(told({{"NCCL_NET", name}}), Lines{found + name + " needs: it does not start"});
  EXPECT_EQ(told({{"NCCL_NET", "ib"}}), Lines{});
}

// Adapters that NCCL_IB_HCA leaves out are no help to the GPUs beside them.
TEST(Lint, AListOfAdaptersThatLeavesGpusWithoutOne) {
  EXPECT_EQ(told({{"NCCL_IB_HCA", "=mlx5_0,mlx5_2,mlx5_4"}}),
            Lines{"info topo.nearest: no active adapter that NCCL can take shares a PCIe bridge with 2 GPUs "
                  "(0000:43:00.0, 0000:45:00.0): NCCL leaves GPUDirect RDMA off there"});
}

TEST(Lint, AGidIndexIsForRoceAlone) {
  EXPECT_EQ(told({{"NCCL_IB_GID_INDEX", "3"}}),
            Lines{"info env.without_effect: NCCL_IB_GID_INDEX has no effect on InfiniBand: only RoCE looks at it"});
  EXPECT_EQ(told({{"NCCL_IB_GID_INDEX", "3"}}, "Ethernet"), Lines{});
  EXPECT_EQ(told({{"NCCL_IB_GID_INDEX", "5"}}, "Ethernet").size(), 8u);  // the index exists on no port
  test::Dgx tree("dgx01", "Ethernet");
  tree.remove("sys/class/infiniband/mlx5_3/ports/1/gid_attrs");
  const std::string why = " cannot be read: the type of an address: nothing tells it";
  EXPECT_EQ(told_with(tree, {{"NCCL_IB_GID_INDEX", "3"}}),
            (Lines{"unknown ib.gid: roce_addresses of port mlx5_3:1" + why,
                   "unknown env.devices: the addresses of mlx5_3:1" + why}));
}

TEST(Lint, SocketsHaveTheirSettingsWhereNcclIsToUseThem) {
  const std::string none = "info env.without_effect: NCCL_SOCKET_NTHREADS has no effect where NCCL uses RDMA";
  EXPECT_EQ(told({{"NCCL_SOCKET_NTHREADS", "4"}}), Lines{none});
  EXPECT_EQ(told({{"NCCL_SOCKET_NTHREADS", "4"}, {"NCCL_IB_DISABLE", "0"}}), Lines{none});
  for (const auto& [name, value] : {std::pair{"NCCL_IB_DISABLE", "1"}, {"NCCL_NET", "Socket"}}) {
    EXPECT_EQ(told({{"NCCL_SOCKET_NTHREADS", "4"}, {name, value}}),
              Lines{fmt::format("warn env.debugging: {}={}: no InfiniBand and no RoCE", name, value)});
  }
}

// A network for storage, of RoCE, without addresses, of small packets and with a slow port, beside NCCL's.
TEST(Lint, APortThatNcclIsToLeaveOutIsNotJudged) {
  test::Dgx tree("dgx01", "Ethernet");
  for (const int storage : {6, 7}) {
    const std::string port = fmt::format("sys/class/infiniband/mlx5_{}/ports/1/", storage);
    tree.write(port + "gids/3", "0000:0000:0000:0000:0000:0000:0000:0000");
    tree.write(fmt::format("sys/class/net/ens{}np0/mtu", storage), "1500");
    tree.write(port + "rate", storage == 6 ? "100 Gb/sec (4X EDR)" : "200 Gb/sec (4X HDR)");
  }
  Node node = tree.node(8, test::healthy_gpus());
  const std::pair<std::string, std::string> index{"NCCL_IB_GID_INDEX", "3"};
  EXPECT_EQ(told_with(node, {{"NCCL_IB_HCA", "^=mlx5_6,mlx5_7"}, index}),
            Lines{"info topo.nearest: no active adapter that NCCL can take shares a PCIe bridge with 2 GPUs "
                  "(0000:43:00.0, 0000:45:00.0): NCCL leaves GPUDirect RDMA off there"});
  // Two of ib.rate, one of ib.gid and of ib.mtu, two of env.devices.
  EXPECT_EQ(told_with(node, {{"NCCL_IB_HCA", "mlx5"}, index}).size(), 6u);
  for (Rank& rank : node.ranks) rank.facts.set("env/NCCL_IB_HCA", fmt::format("=mlx5_{}", rank.rank));
  EXPECT_EQ(told_with(node, {index}).size(), 6u);  // each rank takes the port of its GPU
}

TEST(Lint, ANetworkOfIpv6NeedsNoAddressOfIpv4) {
  test::Dgx tree("dgx01", "Ethernet");
  for (int i = 0; i < 8; ++i)
    tree.write(fmt::format("sys/class/infiniband/mlx5_{}/ports/1/gids/3", i),
               "fd00:0000:0000:0000:0000:0000:0000:0001");
  EXPECT_EQ(told_with(tree, {}).size(), 1u);
  const std::pair<std::string, std::string> family{"NCCL_IB_ADDR_FAMILY", "AF_INET6"};
  EXPECT_EQ(told_with(tree, {family}), Lines{});
  EXPECT_EQ(told_with(tree, {family, {"NCCL_IB_GID_INDEX", "3"}}), Lines{});
}

TEST(Lint, ListsOfDevicesFitOrNot) {
  for (const char* list : {"=mlx5_0,mlx5_2,mlx5_4,mlx5_6", "=mlx5_0,,mlx5_2,mlx5_4,mlx5_6,"})
    EXPECT_EQ(told({{"NCCL_IB_HCA", list}}), Lines{}) << list;
  EXPECT_EQ(
      told({{"NCCL_IB_HCA", "mlx4"}}),
      Lines{"fail env.devices: NCCL_IB_HCA=mlx4 fits nothing here: mlx5_0:1, mlx5_1:1, mlx5_2:1, mlx5_3:1, mlx5_4:1, "
            "mlx5_5:1, mlx5_6:1, mlx5_7:1"});
  EXPECT_EQ(told({{"NCCL_IB_HCA", "=mlx5_0,mlx5_2,mlx5_4,mlx5_6, mlx5_7"}}),
            Lines{"warn env.devices: NCCL_IB_HCA==mlx5_0,mlx5_2,mlx5_4,mlx5_6, mlx5_7: ' mlx5_7' fits no adapter "
                  "here"});
  EXPECT_EQ(told({{"NCCL_IB_HCA", "^mlx5_bond"}}), Lines{});
  EXPECT_EQ(told({{"NCCL_SOCKET_IFNAME", "lo"}}),
            Lines{"warn env.devices: NCCL_SOCKET_IFNAME=lo allows lo: no way to other nodes"});
}

// A node has sockets without a cable, and an interface for each container.
TEST(Lint, AListOfWhatToLeaveOutMayAllowInterfacesThatAreDown) {
  test::Dgx tree;
  for (const char* name : {"eno2", "eno3"}) tree.write(fmt::format("sys/class/net/{}/operstate", name), "down");
  for (int i = 0; i < 5; ++i) tree.write(fmt::format("sys/class/net/veth{}/operstate", i), "up");
  EXPECT_EQ(told_with(tree, {{"NCCL_SOCKET_IFNAME", "^docker,lo,veth"}}), Lines{});
  EXPECT_EQ(told_with(tree, {{"NCCL_SOCKET_IFNAME", "^docker,lo"}}),
            Lines{"warn env.devices: NCCL_SOCKET_IFNAME=^docker,lo allows veth0, veth1, veth2, 2 more: no way to other "
                  "nodes"});
  EXPECT_EQ(told_with(tree, {{"NCCL_SOCKET_IFNAME", "eno2"}}),
            Lines{"warn env.devices: NCCL_SOCKET_IFNAME=eno2 allows eno2: no way to other nodes"});
}

TEST(Lint, APrefixThatFitsMoreThanItNames) {
  test::Dgx tree;
  tree.add_hca("pci0000:80/0000:80:01.0/0000:81:00.0", 10, "InfiniBand", "400 Gb/sec (4X NDR)");
  const NameValues second{{"NCCL_IB_HCA", "mlx5_1"}};
  const Lines lines = told_with(tree.node(8), second);
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines[0], "warn env.devices: NCCL_IB_HCA=mlx5_1: mlx5_1 is also the beginning of other names");
  // Both ports of one adapter bear its name.
  test::Dgx two_ports;
  const std::string port = "sys/class/infiniband/mlx5_1/ports/2/";
  two_ports.write(port + "state", "4: ACTIVE");
  two_ports.write(port + "link_layer", "InfiniBand");
  for (const std::string& line : told_with(two_ports.node(8), second)) EXPECT_EQ(line.find("env.devices"), line.npos);
}

TEST(Lint, AFileCountsAndTheEnvironmentWins) {
  test::Dgx tree;
  tree.write("etc/nccl.conf", "NCCL_P2P_DISABLE=1");
  const std::string set = "info env.file: /etc/nccl.conf sets NCCL_P2P_DISABLE=1";
  EXPECT_EQ(told_with(tree, {}),
            (Lines{"warn env.debugging: NCCL_P2P_DISABLE=1: GPUs of a node exchange through host memory", set}));
  EXPECT_EQ(told_with(tree, {{"NCCL_P2P_DISABLE", "0"}}), Lines{set});
}

TEST(Lint, RanksThatDifferAreNamed) {
  test::NodeTree first("a"), second("b"), third("c");
  std::vector<Node> nodes{first.node(4), second.node(4), third.node(4)};
  for (Node& node : nodes) {
    for (Rank& rank : node.ranks) rank.facts.set("env/NCCL_IB_TC", "106");
  }
  for (int rank = 1; rank < 4; ++rank) nodes[1].ranks[rank].facts = test::NodeTree::healthy_rank();
  const Diagnosis diagnosis = diagnose(nodes);
  ASSERT_EQ(diagnosis.lines.front().check, "same.settings");
  EXPECT_EQ(diagnosis.lines.front().nodes, Lines{"b"});
  EXPECT_EQ(diagnosis.lines.front().finding.evidence, "NCCL_IB_TC: (not set), 106; 2 of 3 nodes: 106");
}

}  // namespace
}  // namespace harness::doctor
