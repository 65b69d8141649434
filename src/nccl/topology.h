#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace harness::nccl {

/// An element of NCCL's own XML (src/graph/xml.cc): a tag with attributes in quotes, and no text between tags.
struct Tag {
  std::string name;
  std::map<std::string, std::string, std::less<>> attributes;
  bool closes = false, alone = false;  // </cpu>; <nvlink … />

  /// "": there is no such attribute.
  std::string text(std::string_view attribute) const;
  /// The number that an attribute begins with: 16 of "16.0 GT/s PCIe". nullopt: there is none that is finite and not
  /// negative.
  std::optional<double> number(std::string_view attribute) const;
};

/// The tags of a text in their order, at most 100,000; declarations and comments are left out.
std::vector<Tag> tags_of(std::string_view xml);
/// Whether every element is closed, in its place. Files that were cut are not whole.
bool is_whole(const std::vector<Tag>& tags);

/// NCCL's picture of a node, as it writes it to NCCL_TOPO_DUMP_FILE: nested PCI devices. NCCL decides by it, not by
/// /sys: with NCCL_TOPO_FILE, and in a virtual machine with its cloud's file.
struct Topology {
  struct Link {
    std::string address;  // of the bridge or the device that it leads to
    double gigatransfers = 0, lanes = 0;
    double bits_per_s = 0;  // in one direction; 0: the file does not say, or says what no link has
  };
  struct Device {
    std::string name;               // a GPU's address, an adapter's "mlx5_0"
    std::int64_t number = 0;        // NCCL's
    bool gpu_direct = false;        // false: NCCL found that it takes no part in GPUDirect RDMA
    double bits_per_s = 0;          // of an adapter's port; 0: the file does not say
    double compute_capability = 0;  // of a GPU, times ten: 90; 0: the file does not say
    std::optional<double> nvlinks;  // of a GPU; nullopt: the file has a number that cannot be read
    int system = 0, cpu = 0;        // the host and the NUMA node that it hangs on, by their place in the file
    std::vector<Link> path;         // from the NUMA node down to the device
  };
  std::vector<Device> gpus, adapters;
  bool any_cpu = false, cpu_without_arch = false;
  bool whole = false;  // is_whole()
};

/// Reads any text. What is no such file has no devices. At most 64 levels of elements count.
Topology parse_topology(std::string_view xml);

/// How many bridges lead to both.
std::size_t shared_bridges(const Topology::Device& a, const Topology::Device& b);

/// Whether the PCIe links of a device carry what a port does.
struct LinkCheck {
  const Topology::Device* device = nullptr;  // an adapter or a GPU
  double port_bits_per_s = 0;                // the adapter's port; a GPU's: the fastest of its nearest adapters
  const Topology::Link* narrow = nullptr;    // the first link that carries less
  bool is_known = false;                     // the file says the rates of the port and of every link that counts
  bool is_usual = false;                     // of a narrow GPU: 16 lanes, and no other GPU has a faster link
};
/// All adapters, then all GPUs. Of an adapter the links count that are on the way to the GPUs nearest to it: the link
/// above the bridge at which a GPU and an adapter meet carries none of what they send each other; where no GPU is below
/// a switch with an adapter, all traffic comes from the processor. Of a GPU those count that are below the bridge at
/// which it meets its nearest adapter, else its own. Without adapters there is nothing to compare GPUs with.
std::vector<LinkCheck> check_links(const Topology& topology);

/// The rate of a PCIe link in one direction, in bits/s: transfers ("32.0 GT/s PCIe": 32) times lanes, less the
/// encoding: 8 of 10 bits up to 5 GT/s, then 128 of 130.
double pcie_bits_per_s(double gigatransfers, double lanes);

}  // namespace harness::nccl
