#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "doctor/check.h"
#include "doctor/stage.h"

namespace harness::doctor {

/// What NCCL takes a node for, as it writes it to NCCL_TOPO_DUMP_FILE: XML of nested PCI devices. Other than /sys it is
/// what NCCL decides by: with NCCL_TOPO_FILE, and in a virtual machine with its cloud's file.
struct NcclTopology {
  struct Link {
    std::string address;    // of the bridge or the device that it leads to
    double bits_per_s = 0;  // in one direction; 0: the file does not say
  };
  struct Device {
    std::string name;         // a GPU's address, an adapter's "mlx5_0"
    bool gpu_direct = false;  // it can take part in GPUDirect RDMA
    double bits_per_s = 0;    // of an adapter's port
    int system = 0, cpu = 0;  // the host and the NUMA node that it hangs on, by their place in the file
    std::vector<Link> path;   // from the NUMA node down to the device
  };
  std::vector<Device> gpus, adapters;
};

/// Reads at most a few thousand elements of any text. What is no such file has no devices.
NcclTopology parse_topology(std::string_view text);

StageCheck topology_check();
/// Whether each GPU has an adapter below a switch with it, and what on the way between them is slower than the
/// adapter's port.
void judge_topology(const NcclTopology& topology, Findings& out);

}  // namespace harness::doctor
