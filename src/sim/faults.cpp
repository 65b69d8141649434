#include "sim/faults.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace harness::sim {
namespace {

constexpr double share_without_gpudirect = 300.0 / 720;
constexpr double share_with_acs = 0.56;

// The rate of 16 lanes, in one direction.
double pcie_bytes_per_s(const config::Hardware& hardware) {
  constexpr int ampere = 80, hopper = 90, blackwell_ultra = 103;
  const int capability = hardware.compute_capability;
  if (capability == 0)
    fail("the hardware file {} has no compute_capability, which pcie_downgraded needs", hardware.name);
  if (capability == blackwell_ultra) return 121e9;
  if (capability >= hopper) return 63e9;
  return capability >= ampere ? 31.5e9 : 15.75e9;
}

void require_rank(int rank, const char* fault, std::ptrdiff_t ranks) {
  if (rank >= ranks) fail("faults: {} is on rank {}, but the job has {}", fault, rank, plural(ranks, "rank"));
}
void require_node(int node, const char* fault, int nodes) {
  if (node >= nodes) fail("faults: {} is on node {}, but the job has {}", fault, node, plural(nodes, "node"));
}

bool touch_network(const config::Faults& f) {
  return !f.slow_links.empty() || !f.narrow_pcie.empty() || f.socket_bytes_per_s > 0 || f.no_gpudirect || f.acs_on;
}

// The share left of a rank's part of the network where all nodes are alike.
double everywhere(const config::Faults& f, double node_bytes_per_s) {
  if (f.socket_bytes_per_s > 0) return std::min(1.0, f.socket_bytes_per_s / node_bytes_per_s);
  if (f.no_gpudirect) return share_without_gpudirect;
  return f.acs_on ? share_with_acs : 1;
}

std::vector<double> network_shares(const config::Faults& f, const config::Hardware& hardware, const Network& network) {
  std::map<int, int> ranks_on;
  for (const int node : network.node_of) ++ranks_on[node];
  std::vector<double> shares(network.node_of.size(), everywhere(f, network.node_bytes_per_s));
  const auto limit = [&](int rank, double share) { shares[rank] = std::min(shares[rank], share); };
  for (const config::SlowLink& link : f.slow_links) {
    require_node(link.node, "slow_link", static_cast<int>(ranks_on.size()));
    for (std::size_t rank = 0; rank < shares.size(); ++rank) {
      if (network.node_of[rank] == link.node) limit(static_cast<int>(rank), link.share);
    }
  }
  for (const config::NarrowPcie& pcie : f.narrow_pcie) {
    require_rank(pcie.rank, "pcie_downgraded", std::ssize(shares));
    require_node(pcie.node, "pcie_downgraded", static_cast<int>(ranks_on.size()));
    const double left = pcie.share * pcie_bytes_per_s(hardware);
    for (int rank = 0; std::cmp_less(rank, shares.size()); ++rank) {
      const int node = network.node_of[rank];
      const double part = network.node_bytes_per_s / ranks_on[node];
      if (pcie.rank == rank || pcie.node == node) limit(rank, left / part);
    }
  }
  return shares;
}

}  // namespace

Condition condition_of(const config::Faults& faults, const config::Hardware& hardware, const Network& network) {
  Condition condition;
  const std::size_t ranks = network.node_of.size();
  if (!faults.slow_gpus.empty()) condition.clock.assign(ranks, 1);
  for (const config::SlowGpu& gpu : faults.slow_gpus) {
    require_rank(gpu.rank, "slow_gpu", std::ssize(condition.clock));
    condition.clock[gpu.rank] = std::min(condition.clock[gpu.rank], gpu.speed);
  }
  if (!touch_network(faults)) return condition;
  if (!(network.node_bytes_per_s > 0))
    fail("faults of the network need a node's rate: add `fabric: {{node: 400 GB/s}}`");
  condition.network = network_shares(faults, hardware, network);
  return condition;
}

}  // namespace harness::sim
