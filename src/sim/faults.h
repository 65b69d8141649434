#pragma once

#include <vector>

#include "config/faults.h"
#include "config/hardware.h"
#include "sim/link_time.h"

namespace harness::sim {

/// The resources that faults leave to each rank of a job, as shares of what it should have. Empty: all of it,
/// everywhere.
struct Condition {
  std::vector<double> clock;    // of its GPU's multiprocessors: what computes takes longer, what moves memory does not
  std::vector<double> network;  // of its part of its node's rate towards the others

  double clock_of(int rank) const { return clock.empty() ? 1 : clock[rank]; }
  double network_of(int rank) const { return network.empty() ? 1 : network[rank]; }
};

/// The effect of each fault is on what carries a rank's bytes out of its node, and the narrowest place decides. A
/// rank's part is the node's rate by its ranks: each GPU has its adapter, and NCCL's channels carry equal parts over
/// all of them, so the slowest holds up the others (NVIDIA, DGX H100 user guide; nccl, src/graph).
///
/// - slow_link: the rank's part, times the share.
/// - pcie_downgraded: what the standard gives 16 lanes in one direction, times the share: 15.8 GB/s in generation 3,
///   31.5 in 4 (compute capability 8.x), 63 in 5 (9.0 and later), 121 in 6 (10.3) (PCI Express Base Specification).
/// - no_gpudirect: 42 % of the part: 300 of 720 Gbit/s in both directions between two H100 nodes (Imbue,
///   "From bare metal to a 70B model", cluster-health: its limits for ib_write_bw without and with GPUDirect RDMA).
///   NVIDIA/nccl issue 1412 has 33 of 93 GB/s.
/// - acs_on: 56 % of the part, before ACS was set right (NVIDIA/nccl issue 949, A100 with HDR). Nothing to add where
///   GPUDirect is not used: then nothing passes between GPU and adapter.
/// - socket_fallback: the stated rate of a node, by its ranks; RDMA's faults do not matter then.
///
/// Links within a node are NVLink's and are not touched. Throws Error if a fault is on a rank or node that is not
/// there, or if the hardware lacks a number that it needs.
Condition condition_of(const config::Faults& faults, const config::Hardware& hardware, const Network& network);

}  // namespace harness::sim
