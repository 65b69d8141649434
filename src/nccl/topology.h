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

  /// Returns "" if there is no such attribute.
  std::string text(std::string_view attribute) const;
  /// Returns the number at the start of an attribute: 16 for "16.0 GT/s PCIe". nullopt unless finite and not negative.
  std::optional<double> number(std::string_view attribute) const;
};

/// Returns the tags of a text in order, at most 100,000, without declarations and comments.
std::vector<Tag> tags_of(std::string_view xml);
/// Whether all elements are closed and properly nested. Truncated files are not.
bool is_whole(const std::vector<Tag>& tags);

/// NCCL's view of a node, as dumped to NCCL_TOPO_DUMP_FILE: nested PCI devices. NCCL decides by it, not by /sys: with
/// NCCL_TOPO_FILE, and in a virtual machine with its cloud's file.
struct Topology {
  struct Link {
    std::string address;  // of the bridge or the device that it leads to
    double gigatransfers = 0, lanes = 0;
    double bits_per_s = 0;  // in one direction; 0: not stated, or not a rate that a link can have
  };
  struct Device {
    std::string name;               // a GPU's address, an adapter's "mlx5_0"
    std::int64_t number = 0;        // NCCL's
    bool gpu_direct = false;        // false: NCCL found that it does not support GPUDirect RDMA
    double bits_per_s = 0;          // of an adapter's port; 0: not stated
    double compute_capability = 0;  // of a GPU, times ten: 90; 0: not stated
    std::optional<double> nvlinks;  // of a GPU; nullopt: the file has an unreadable number
    int system = 0, cpu = 0;        // its host and NUMA node, by their position in the file
    std::vector<Link> path;         // from the NUMA node down to the device
  };
  std::vector<Device> gpus, adapters;
  bool any_cpu = false, cpu_without_arch = false;
  bool whole = false;  // is_whole()
};

/// Parses any text. Other files yield no devices. Tracks at most 64 levels of nested elements.
Topology parse_topology(std::string_view xml);

/// Returns how many bridges the paths to both devices share.
std::size_t shared_bridges(const Topology::Device& a, const Topology::Device& b);

/// Whether the PCIe links of a device can carry the rate of a port.
struct LinkCheck {
  const Topology::Device* device = nullptr;  // an adapter or a GPU
  double port_bits_per_s = 0;                // the adapter's port; for a GPU, the fastest of its nearest adapters
  const Topology::Link* narrow = nullptr;    // the first link that carries less
  bool is_known = false;                     // the file states the rates of the port and of every relevant link
  bool is_usual = false;                     // the narrow GPU has 16 lanes, and no other GPU has a faster link
};
/// Checks all adapters, then all GPUs. For an adapter, the relevant links are on the path to its nearest GPUs: a link
/// above the bridge where a GPU and an adapter meet carries none of their traffic. If no GPU shares a switch with an
/// adapter, all traffic comes from the processor. For a GPU, they are below the bridge where it meets its nearest
/// adapter, else only its own. Without adapters, returns nothing: there is nothing to compare GPUs with.
std::vector<LinkCheck> check_links(const Topology& topology);

/// Returns the rate of a PCIe link in one direction, in bits/s: transfers ("32.0 GT/s PCIe": 32) times lanes, less the
/// encoding: 8 of 10 bits up to 5 GT/s, then 128 of 130.
double pcie_bits_per_s(double gigatransfers, double lanes);

}  // namespace harness::nccl
