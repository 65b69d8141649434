#include "machine/topology.h"

#include <algorithm>

namespace harness::machine {

Topology Topology::node_by_node(int ranks, int ranks_per_node) {
  Topology topology;
  for (int rank = 0; rank < ranks; ++rank) topology.node_of.push_back(rank / ranks_per_node);
  return topology;
}

int Topology::nodes() const {
  return node_of.empty() ? 0 : *std::ranges::max_element(node_of) + 1;
}

}  // namespace harness::machine
