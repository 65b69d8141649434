#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace harness::config {

/// The kinds of what may be wrong with a cluster, by the keys that a configuration has for them.
enum class Fault : std::uint8_t {
  slow_gpu,             // a GPU whose clocks are held down, by heat or power
  slow_link,            // a node with a part of its network: a lost rail, a port at a lower rate
  pcie_downgraded,      // GPUs whose PCIe link has fewer lanes or an older generation than it should
  socket_fallback,      // NCCL found no adapter for RDMA and uses TCP
  no_gpudirect,         // adapters read GPUs' memory through a copy in the host's
  acs_on,               // PCIe's access control sends what passes between GPU and adapter through the root complex
  tensor_across_nodes,  // ranks were dealt to the nodes one by one, so neighbours stand on different nodes
};

struct SlowGpu {
  int rank = 0;
  double speed = 1;  // of its clocks, (0, 1]
  bool operator==(const SlowGpu&) const = default;
};
struct SlowLink {
  int node = 0;
  double share = 1;  // of its rate, (0, 1]
  bool operator==(const SlowLink&) const = default;
};
struct NarrowPcie {
  int rank = -1, node = -1;  // one of them: a GPU, or all of a node's
  double share = 1;          // of its rate, (0, 1]
  bool operator==(const NarrowPcie&) const = default;
};

/// The faults of the cluster of a prediction: `faults` of a configuration. src/sim/faults.h says what each does.
/// Ranks and nodes are counted from 0; whether the job has them is checked when it is known.
struct Faults {
  std::vector<SlowGpu> slow_gpus;
  std::vector<SlowLink> slow_links;
  std::vector<NarrowPcie> narrow_pcie;
  double socket_bytes_per_s = 0;  // of a node, over TCP; 0: NCCL uses RDMA
  bool no_gpudirect = false;
  bool acs_on = false;
  bool tensor_across_nodes = false;
  bool operator==(const Faults&) const = default;

  bool any() const { return !(*this == Faults()); }
  /// Without those that are mended.
  Faults without(const std::set<Fault>& mended) const;
};

/// Where ranks stand: with tensor_across_nodes dealt to the nodes one by one (`mpirun --map-by node`, Slurm's
/// `--distribution=cyclic`), each node with as many as `node_of` gives it; else as `node_of` has it.
std::vector<int> places(const Faults& faults, std::vector<int> node_of);

/// "slow_gpu".
const char* name_of(Fault fault);
/// "none", "all", or names with commas between them.
std::string print_mended(const std::set<Fault>& mended);

}  // namespace harness::config
