#pragma once

#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace harness::machine {

/// A port of an InfiniBand or RoCE adapter, as the kernel describes it in /sys/class/infiniband. What cannot be read is
/// "". Nothing asks yet: this is for `harness doctor`, which is to come.
struct HcaPort {
  std::string device;                                            // "mlx5_0"
  int port = 0;                                                  // from 1
  std::string state;                                             // of the subnet: "ACTIVE", "INIT", "DOWN"
  std::string phys_state;                                        // of the cable: "LinkUp", "Polling", "Disabled"
  std::string rate;                                              // "400 Gb/sec (4X NDR)"
  std::string link_layer;                                        // "InfiniBand"; "Ethernet": RoCE
  double bits_per_s = std::numeric_limits<double>::quiet_NaN();  // of `rate`, one direction
};

/// From a file such as "4: ACTIVE" the word, from "400 Gb/sec (4X NDR)" the rate; NaN if it is none.
std::string state_in(std::string_view text);
double rate_in(std::string_view text);

/// All ports, by device and port; none without such adapters. `root` replaces "/" in tests.
std::vector<HcaPort> find_hcas(const std::filesystem::path& root = "/");

}  // namespace harness::machine
