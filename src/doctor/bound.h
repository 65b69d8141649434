#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/hardware.h"
#include "doctor/facts.h"
#include "program/links.h"

namespace harness::doctor {

/// What an all-reduce over all ranks has to work with. What is 0 is not known.
struct Fabric {
  int ranks = 0, ranks_per_node = 0;
  program::Links links;
  double memory_bytes_per_s = 0, cache_bytes = 0;  // of one rank
  std::optional<config::Hardware> hardware;        // of the GPUs, and of their machines where nothing was read there
  std::vector<std::string> sources;                // where the numbers are from, a sentence each

  int nodes() const { return (ranks + ranks_per_node - 1) / ranks_per_node; }
};

/// From what the nodes have: active ports, and what their GPU's hardware file says. A rank per GPU, or where there is
/// none per rank of the job. ranks: as many instead, placed as densely; 0: as there are. Throws Error where ranks of
/// several nodes have no known link between them.
Fabric fabric_of(const std::vector<Node>& nodes, int ranks);
/// Of machines as the hardware file describes them. ranks 0: one machine.
Fabric fabric_of(const config::Hardware& hardware, int ranks);

/// One reason why an all-reduce cannot take less.
struct LeastTime {
  std::string what, formula;  // "network", "2 (m - 1) / m x size / …"
  double seconds = 0;
};

struct Bound {
  std::vector<LeastTime> limits;  // that hold whatever the algorithm is, where no switch of the network adds up
  double seconds = 0;             // the largest of them
  double with_sharp_s = 0;        // the same where the network's switches add up (SHARP)
  double predicted_s = 0;         // as `plan --backend sim` predicts it, with what NCCL chooses; 0: not known
  double ring_s = 0;              // the same with NCCL's ring
};
/// The least time of an all-reduce of `bytes` on each rank: what program/links.h says of the links, and that each rank
/// reads what it gives and writes what it gets. Throws Error where nothing is known that could limit it.
Bound bound_of_all_reduce(double bytes, const Fabric& fabric);

}  // namespace harness::doctor
