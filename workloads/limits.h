#pragma once

#include <span>

#include "config/settings.h"
#include "program/layout.h"

namespace harness {

/// What carries a collective's bytes, in one direction; 0: not known.
struct Links {
  double rank_bytes_per_s = 0;         // of one rank, towards the others on its node
  double node_bytes_per_s = 0;         // of one node, towards the others
  bool switches_reduce_nodes = false;  // the links between ranks of a node may add up on the way (NVLink SHARP)
  bool switches_reduce_network = false;
};

/// The highest bus bandwidth, in nccl-tests' sense, that these links allow when all groups of the layout communicate at
/// once: from the fewest bytes that must leave one rank, and one node, whatever the algorithm (docs/method.md).
/// node_of[rank]: for every rank of the layout. 0 when a link that it depends on is not known.
double highest_bus_bandwidth(const Settings& settings, const Layout& layout, std::span<const int> node_of,
                             const Links& links);

}  // namespace harness
