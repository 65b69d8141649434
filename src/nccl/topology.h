#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace harness::nccl {

/// An element of NCCL's own XML (src/graph/xml.cc): a tag with attributes in quotes, and no text between tags.
struct Tag {
  std::string name;
  std::map<std::string, std::string, std::less<>> attributes;
  bool closes = false, alone = false;  // </cpu>; <nvlink … />

  /// "" and 0: there is no such attribute.
  std::string text(std::string_view attribute) const;
  /// The number that an attribute begins with: 16 of "16.0 GT/s PCIe".
  double number(std::string_view attribute) const;
};

/// The tags of a text in their order, at most 100,000; declarations and comments are left out.
std::vector<Tag> tags_of(std::string_view xml);

/// NCCL's picture of a node, as it writes it to NCCL_TOPO_DUMP_FILE: nested PCI devices. NCCL decides by it, not by
/// /sys: with NCCL_TOPO_FILE, and in a virtual machine with its cloud's file.
struct Topology {
  struct Link {
    std::string address;                  // of the bridge or the device that it leads to
    double gigatransfers = 0, lanes = 0;  // 0: the file does not say
    double bits_per_s = 0;                // in one direction; 0: the file does not say
  };
  struct Device {
    std::string name;               // a GPU's address, an adapter's "mlx5_0"
    std::int64_t number = 0;        // NCCL's
    bool gpu_direct = false;        // false: NCCL found that it takes no part in GPUDirect RDMA
    double bits_per_s = 0;          // of an adapter's port
    double compute_capability = 0;  // of a GPU, times ten: 90
    double nvlinks = 0;             // of a GPU
    int system = 0, cpu = 0;        // the host and the NUMA node that it hangs on, by their place in the file
    std::vector<Link> path;         // from the NUMA node down to the device
  };
  std::vector<Device> gpus, adapters;
  bool any_cpu = false, cpu_without_arch = false;
};

/// Reads any text. What is no such file has no devices. At most 64 levels of elements count.
Topology parse_topology(std::string_view xml);

/// How many bridges lead to both.
std::size_t shared_bridges(const Topology::Device& a, const Topology::Device& b);

/// A link on the way between an adapter and the GPUs that are nearest to it which carries less than the adapter's port.
struct NarrowLink {
  const Topology::Device* adapter = nullptr;
  const Topology::Link* link = nullptr;
};
/// The first one of each adapter. The link above the bridge at which a GPU and an adapter meet carries none of what
/// they send each other; where no GPU is below a switch with an adapter, all traffic comes from the processor.
std::vector<NarrowLink> narrow_links(const Topology& topology);

/// The rate of a PCIe link in one direction, in bits/s: transfers ("32.0 GT/s PCIe": 32) times lanes, less the
/// encoding: 8 of 10 bits up to 5 GT/s, then 128 of 130.
double pcie_bits_per_s(double gigatransfers, double lanes);

}  // namespace harness::nccl
