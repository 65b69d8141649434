#pragma once

#include <optional>
#include <string>
#include <vector>

#include "doctor/facts.h"

namespace harness::doctor {

// What the kernel tells of PCIe links. Devices and bridges go by the names of their facts: "gpu/0000:1b:00.0",
// "hca/mlx5_0", "bridge/0000:10:01.0".

/// Lanes of a link; nothing where a hypervisor hides them ("", "0", "255").
std::optional<double> lanes(const Facts& node, const std::string& name);
/// Transfers of a lane per nanosecond: 32 of "32.0 GT/s PCIe"; nothing of "Unknown".
std::optional<double> gigatransfers(const Facts& node, const std::string& name);

/// The bridge that a device hangs on; "" below the processor, or unknown.
std::string bridge_above(const Facts& node, const std::string& key);

/// What both ends of a link can do: never more than the lesser. `name`: "/max_width", which `read` is for.
std::optional<double> both_ends(const Facts& node, const std::string& key, const std::string& name,
                                std::optional<double> (*read)(const Facts&, const std::string&));

/// What a PCIe link carries in one direction, in bits/s: transfers ("32.0 GT/s PCIe": 32) times lanes, less the
/// encoding: 8 of 10 bits up to 5 GT/s, then 128 of 130.
double pcie_bits_per_s(double gt_per_s, double lanes);

/// What the links between a GPU and its host carry in one direction, in bytes/s, while `busy`, GPUs of the node and
/// this one among them, all use theirs: those below one switch share the link above it. Links count with what both of
/// their ends can do. Nothing where that is not known: /sys does not tell all links of the way, a hypervisor shows
/// links of its own making, or the GPU is not on PCIe (Grace).
std::optional<double> host_link_bytes_per_s(const Facts& node, const std::string& gpu,
                                            const std::vector<std::string>& busy);

}  // namespace harness::doctor
