#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "nccl/words.h"

namespace harness::nccl {

/// The value of NCCL_SOCKET_IFNAME or NCCL_IB_HCA: ['^'] ['='] name [':' port] {',' …}; names are prefixes
/// without '='.
struct DeviceList {
  bool all_but = false, exact = false;
  std::vector<std::string> names;

  explicit DeviceList(std::string_view text) {
    TextCursor cursor{text};
    all_but = cursor.literal("^");
    exact = cursor.literal("=");
    names = split_text(cursor.rest, ",");
  }
  /// device: "eth0" or "mlx5_0:1/IB"
  bool matches(const std::string& name, std::string_view device) const {
    device = device.substr(0, device.find('/'));
    const auto has_port = device.find(':'), wants_port = name.find(':');
    const std::string_view base = device.substr(0, has_port), wanted = std::string_view(name).substr(0, wants_port);
    if (exact ? base != wanted : !base.starts_with(wanted)) return false;
    return wants_port == std::string::npos || has_port == std::string_view::npos ||
           device.substr(has_port) == std::string_view(name).substr(wants_port);
  }
  bool allows(std::string_view device) const {
    return all_but != std::ranges::any_of(names, [&](const std::string& name) { return matches(name, device); });
  }
};

}  // namespace harness::nccl
