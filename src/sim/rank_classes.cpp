#include "sim/rank_classes.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/text.h"

namespace harness::sim {
namespace {

using program::Coordinates;
using program::GroupId;
using program::Peer;

// The ranks of each instance of a group, and the instance of each rank; -1: none.
struct Instances {
  std::vector<std::vector<int>> members;
  std::vector<int> of_rank;
};

Instances instances_of(const program::ProgramSet& set, const program::Group& group) {
  Instances instances;
  instances.of_rank.assign(set.layout.ranks(), -1);
  for (int rank = 0; rank < set.layout.ranks(); ++rank) {
    if (instances.of_rank[rank] >= 0) continue;
    std::vector<int> members = group.members(set.layout, set.layout.coordinates(rank));
    for (const int member : members) instances.of_rank[member] = static_cast<int>(instances.members.size());
    if (!members.empty()) instances.members.push_back(std::move(members));
  }
  return instances;
}

std::vector<int> sorted_once(std::vector<int> numbers) {
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

// Splits the numbers further by key_of(rank) and counts them anew, in the order of their lowest ranks. Returns how many
// there are now.
template <class KeyOf>
std::size_t refine(std::vector<int>& marks, KeyOf key_of) {
  std::map<std::pair<int, std::invoke_result_t<KeyOf, int>>, int> numbers;
  std::vector<int> finer;
  for (int rank = 0; std::cmp_less(rank, marks.size()); ++rank) {
    const auto known = numbers.try_emplace({marks[rank], key_of(rank)}, static_cast<int>(numbers.size())).first;
    finer.push_back(known->second);
  }
  marks = std::move(finer);
  return numbers.size();
}

// Returns the class of each rank. Classes are numbered by their lowest ranks.
std::vector<int> refined(const program::ProgramSet& set, std::span<const int> marks) {
  struct Partners {
    std::set<GroupId> groups;
    std::set<std::pair<program::Axis, int>> peers;  // axis and offset
  };
  std::vector<Partners> partners;    // in a step, by role
  std::vector<Instances> instances;  // by group
  std::vector<int> role_of;
  for (const program::Program& program : set.roles) {
    Partners& of_role = partners.emplace_back();
    for (const program::Operation& op : program.step) {
      if (const GroupId group = program::group_of(op.action); group >= 0) of_role.groups.insert(group);
      if (const Peer* peer = program::peer_of(op.action)) of_role.peers.emplace(peer->axis, peer->offset);
    }
  }
  for (const program::Group& group : set.groups) instances.push_back(instances_of(set, group));
  for (int rank = 0; rank < set.layout.ranks(); ++rank) role_of.push_back(set.role_of(set.layout.coordinates(rank)));
  std::vector<int> colours = role_of;
  // Splits each class by the classes that its ranks meet. Returns how many classes there are now.
  const auto by_partners = [&] {
    std::vector<std::vector<std::vector<int>>> met(instances.size());  // by group and instance: colours
    for (std::size_t g = 0; g < instances.size(); ++g) {
      for (const std::vector<int>& members : instances[g].members) {
        std::vector<int> of_members;
        for (const int rank : members) of_members.push_back(colours[rank]);
        met[g].push_back(sorted_once(std::move(of_members)));
      }
    }
    return refine(colours, [&](int rank) {
      std::vector<int> key;
      for (const GroupId group : partners[role_of[rank]].groups) {
        const std::vector<int>& of_group = met[group][instances[group].of_rank[rank]];
        key.push_back(-1);
        key.insert(key.end(), of_group.begin(), of_group.end());
      }
      for (const auto& [axis, offset] : partners[role_of[rank]].peers)
        key.push_back(colours[set.layout.neighbour(rank, axis, offset)]);
      return key;
    });
  };
  std::size_t classes = refine(colours, [&](int rank) { return marks.empty() ? 0 : marks[rank]; });
  for (std::size_t finer = by_partners(); finer != classes; finer = by_partners()) classes = finer;
  return colours;
}

// Of a rank's part of its node's network. 300 of 720 Gbit/s in both directions between two H100 nodes (Imbue, "From
// bare metal to a 70B model", cluster-health: its limits for ib_write_bw without and with GPUDirect RDMA); NVIDIA/nccl
// issue 1412 has 33 of 93 GB/s.
constexpr double share_without_gpudirect = 300.0 / 720;
// Before ACS was set right (NVIDIA/nccl issue 949, A100 with HDR).
constexpr double share_with_acs = 0.56;

// The rate of 16 lanes, one direction, of generations 6 to 3 (PCI Express Base Specification).
double pcie_bytes_per_s(const config::Hardware& hardware) {
  constexpr int ampere = 80, hopper = 90, blackwell_ultra = 103;
  const int capability = hardware.compute_capability;
  if (capability == 0)
    fail("the hardware file {} has no compute_capability, which pcie_downgraded needs", hardware.name);
  if (capability == blackwell_ultra) return 121e9;
  if (capability >= hopper) return 63e9;
  return capability >= ampere ? 31.5e9 : 15.75e9;
}

// `what`: "rank" or "node".
void require_there(const char* fault, const char* what, int number, std::ptrdiff_t count) {
  if (number >= count) fail("faults: {} is on {} {}, but the job has {}", fault, what, number, plural(count, what));
}

bool touch_network(const config::Faults& f) {
  return !f.slow_links.empty() || !f.narrow_pcie.empty() || f.socket_bytes_per_s > 0 || f.no_gpudirect || f.acs_on;
}

// Returns the share left of a rank's part of the network by faults that all nodes have.
double everywhere(const config::Faults& f, const Network& network, const config::Calibration& calibration) {
  if (f.socket_bytes_per_s > 0) {
    // What NCCL moves over TCP is a share of what it moves over the healthy network, not of the network's nominal rate.
    const double share = network_share(network, calibration);
    return std::min(1.0, f.socket_bytes_per_s / (network.node_bytes_per_s * (share > 0 ? share : 1)));
  }
  if (f.no_gpudirect) return share_without_gpudirect;  // nothing passes between GPU and adapter, so ACS has no effect
  return f.acs_on ? share_with_acs : 1;
}

std::vector<double> network_shares(const config::Faults& f, const config::Hardware& hardware, const Network& network,
                                   const config::Calibration& calibration) {
  std::map<int, int> ranks_on;
  for (const int node : network.node_of) ++ranks_on[node];
  std::vector<double> shares(network.node_of.size(), everywhere(f, network, calibration));
  const auto limit = [&](int rank, double share) { shares[rank] = std::min(shares[rank], share); };
  for (const config::SlowLink& link : f.slow_links) {
    require_there("slow_link", "node", link.node, std::ssize(ranks_on));
    for (std::size_t rank = 0; rank < shares.size(); ++rank) {
      if (network.node_of[rank] == link.node) limit(static_cast<int>(rank), link.share);
    }
  }
  for (const config::NarrowPcie& pcie : f.narrow_pcie) {
    require_there("pcie_downgraded", "rank", pcie.rank, std::ssize(shares));
    require_there("pcie_downgraded", "node", pcie.node, std::ssize(ranks_on));
    const double left = pcie.share * pcie_bytes_per_s(hardware);
    for (int rank = 0; std::cmp_less(rank, shares.size()); ++rank) {
      const int node = network.node_of[rank];
      // Each GPU has its adapter, and NCCL's channels carry equal parts over all of them, so the slowest holds up the
      // others (NVIDIA, DGX H100 user guide; nccl, src/graph).
      const double part = network.node_bytes_per_s / ranks_on[node];
      if (pcie.rank == rank || pcie.node == node) limit(rank, left / part);
    }
  }
  return shares;
}

}  // namespace

RankClasses::RankClasses(const program::ProgramSet& set, std::span<const int> marks)
    : set_(set), class_of_(refined(set, marks)) {
  for (int rank = 0; rank < set.layout.ranks(); ++rank) {
    if (class_of_[rank] == std::ssize(list_)) list_.push_back({set.role_of(set.layout.coordinates(rank)), rank, 0});
    ++list_[class_of_[rank]].ranks;
  }
}

std::vector<int> RankClasses::in_group(int number, GroupId group) const {
  const Coordinates at = set_.layout.coordinates(list_[number].first_rank);
  std::vector<int> classes;
  for (const int rank : set_.groups[group].members(set_.layout, at)) classes.push_back(class_of_[rank]);
  return sorted_once(std::move(classes));
}

int RankClasses::at_peer(int number, const Peer& peer) const {
  return class_of_[set_.layout.neighbour(list_[number].first_rank, peer.axis, peer.offset)];
}

std::set<std::pair<program::Axis, int>> directions_of(const program::ProgramSet& set) {
  std::set<std::pair<program::Axis, int>> directions;
  for (const program::Program& program : set.roles) {
    for (const program::Operation& op : program.step) {
      if (const auto* send = std::get_if<program::Send>(&op.action))
        directions.emplace(send->peer.axis, send->peer.offset);
    }
  }
  return directions;
}

Condition condition_of(const config::Faults& faults, const config::Hardware& hardware, const Network& network,
                       const config::Calibration& calibration) {
  Condition condition;
  const std::size_t ranks = network.node_of.size();
  if (!faults.slow_gpus.empty()) condition.clock.assign(ranks, 1);
  for (const config::SlowGpu& gpu : faults.slow_gpus) {
    require_there("slow_gpu", "rank", gpu.rank, std::ssize(condition.clock));
    condition.clock[gpu.rank] = std::min(condition.clock[gpu.rank], gpu.speed);
  }
  if (!touch_network(faults)) return condition;
  if (!(network.node_bytes_per_s > 0))
    fail("faults of the network need a node's rate: add `fabric: {{node: 400 GB/s}}`");
  condition.network = network_shares(faults, hardware, network, calibration);
  return condition;
}

RingLinks ring_links(program::Layout layout, int context, int rank, const Network& network,
                     const Condition& condition) {
  layout[program::Axis::data] /= context;
  layout[program::Axis::context] = context;
  RingLinks links;
  for (int i = 0; i < context; ++i) {
    const int other = layout.neighbour(rank, program::Axis::context, i);
    links.within_node = links.within_node && network.node_of[other] == network.node_of[rank];
    links.left = std::min(links.left, condition.network_of(other));
  }
  return links;
}

std::vector<int> marks_of(const program::ProgramSet& set, const Network& network, const Condition& condition,
                          int context) {
  const program::Layout& layout = set.layout;
  std::vector<int> marks(layout.ranks(), 0);
  refine(marks, [&](int rank) { return std::pair(condition.clock_of(rank), condition.network_of(rank)); });
  for (const program::Group& group : set.groups) {
    const std::vector<program::Spread> spreads = program::spreads_of(group, layout, network.node_of);
    refine(marks, [&](int rank) { return spreads[rank]; });
  }
  if (context > 1) {
    refine(marks, [&](int rank) {
      const RingLinks links = ring_links(layout, context, rank, network, condition);
      return std::pair(links.within_node, links.left);
    });
  }
  for (const auto& [axis, offset] : directions_of(set)) {
    const std::vector<int> senders = senders_along({axis, offset}, layout, network);
    refine(marks, [&](int rank) { return senders[rank]; });
  }
  return marks;
}

}  // namespace harness::sim
