#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "doctor/stage.h"

namespace harness::doctor {

// Logs of NCCL, in the formats of its source (init.cc, net.cc, net_ib.cc, net_socket.cc, bootstrap.cc, nvls.cc
// of 2.28).

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
  RankText& connects(int mtu) {  // 5 stands for packets of 4096 bytes
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

/// Two GPUs and two adapters.
inline Node node_with_ports(const std::string& host, int first_rank, int ports = 2) {
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

/// A rank of which nothing else is known yet.
inline RankText on_infiniband(int adapters = 2) {
  return RankText().version("2.28.9+cuda13.0").starts("eth0").adapters(adapters).over("IB");
}

/// As a sound rank logs: each has the adapter beside its GPU.
inline RankText sound(int rank) {
  RankText text = on_infiniband().multicast(true).connects(5);
  return text.sends(fmt::format("NET/IB/{}/GDRDMA", rank % 2)).peers("P2P/CUMEM");
}

/// The nodes and logs of a job of four ranks, all sound until a test changes them.
struct Job {
  std::vector<Node> nodes{node_with_ports("node0", 0), node_with_ports("node1", 2)};
  std::vector<RankText> texts{sound(0), sound(1), sound(2), sound(3)};

  std::vector<StageFinding> judged() const {
    std::vector<RankLog> logs;
    for (std::size_t rank = 0; rank < texts.size(); ++rank) logs.push_back(texts[rank].of(static_cast<int>(rank)));
    return judge_nccl(nodes, logs);
  }
  // "fail nccl.network node1: …" of what is no pass.
  std::vector<std::string> told() const {
    std::vector<std::string> lines;
    for (const StageFinding& said : judged()) {
      if (said.finding.verdict == Verdict::pass || said.finding.verdict == Verdict::skip) continue;
      if (said.finding.verdict == Verdict::info) continue;
      lines.push_back(
          fmt::format("{} {} {}: {}", name_of(said.finding.verdict), said.check, said.host, said.finding.evidence));
    }
    return lines;
  }
  Verdict verdict(const std::string& check, const std::string& host) const {
    for (const StageFinding& said : judged()) {
      if (said.check == check && said.host == host) return said.finding.verdict;
    }
    ADD_FAILURE() << check << " says nothing of " << host;
    return Verdict::unknown;
  }
};

}  // namespace harness::doctor
