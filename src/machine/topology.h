#pragma once

#include <algorithm>
#include <vector>

namespace harness::machine {

/// Which ranks of a job share a node.
struct Topology {
  std::vector<int> node_of;  // by rank; nodes are numbered from 0

  /// Ranks numbered node by node, each node with as many but perhaps the last.
  static Topology node_by_node(int ranks, int ranks_per_node) {
    Topology topology;
    for (int rank = 0; rank < ranks; ++rank) topology.node_of.push_back(rank / ranks_per_node);
    return topology;
  }

  bool is_known() const { return !node_of.empty(); }
  int nodes() const { return node_of.empty() ? 0 : *std::ranges::max_element(node_of) + 1; }
};

}  // namespace harness::machine
