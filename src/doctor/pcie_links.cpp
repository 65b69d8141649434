#include "doctor/pcie_links.h"

#include <algorithm>

namespace harness::doctor {
namespace {

// Of the link between a device or bridge and what is above it. Its other end alone would promise too much.
std::optional<double> link_bytes_per_s(const Facts& node, const std::string& key) {
  if (!gigatransfers(node, key + "/max_speed") || !lanes(node, key + "/max_width")) return std::nullopt;
  const auto speed = both_ends(node, key, "/max_speed", gigatransfers),
             width = both_ends(node, key, "/max_width", lanes);
  return pcie_bits_per_s(*speed, *width) / 8;
}

// Whether what a GPU copies passes a bridge, or the GPU itself.
bool is_on_way(const Facts& node, const std::string& gpu, const std::string& part) {
  const std::vector<std::string> path = pci_path(node, "gpu/" + gpu);
  return std::ranges::find(path, part) != path.end();
}

}  // namespace

std::optional<double> lanes(const Facts& node, const std::string& name) {
  const auto width = node.number(name);
  constexpr double most = 32;
  return width && *width >= 1 && *width <= most ? width : std::nullopt;
}

std::optional<double> gigatransfers(const Facts& node, const std::string& name) {
  const auto speed = node.number(name);
  constexpr double least = 2;
  return speed && *speed >= least ? speed : std::nullopt;
}

std::string bridge_above(const Facts& node, const std::string& key) {
  if (key.starts_with("bridge/")) {
    const std::string upper = node.text(key + "/above");
    return upper == "host" || upper.empty() ? "" : "bridge/" + upper;
  }
  const std::vector<std::string> path = pci_path(node, key);
  return path.size() < 2 ? "" : "bridge/" + path[path.size() - 2];
}

std::optional<double> both_ends(const Facts& node, const std::string& key, const std::string& name,
                                std::optional<double> (*read)(const Facts&, const std::string&)) {
  auto most = read(node, key + name);
  const std::string upper = bridge_above(node, key);
  if (const auto other = upper.empty() ? std::nullopt : read(node, upper + name))
    most = std::min(most.value_or(*other), *other);
  return most;
}

double pcie_bits_per_s(double gt_per_s, double lanes) {
  constexpr double giga = 1e9, old = 5, old_encoding = 0.8, encoding = 128.0 / 130;
  return gt_per_s * giga * lanes * (gt_per_s <= old ? old_encoding : encoding);
}

std::optional<double> host_link_bytes_per_s(const Facts& node, const std::string& gpu,
                                            const std::vector<std::string>& busy) {
  if (is_virtual(node) || is_arm(node)) return std::nullopt;
  const std::vector<std::string> path = pci_path(node, "gpu/" + gpu);
  std::optional<double> least;
  for (const std::string& part : path) {
    const auto whole = link_bytes_per_s(node, part == gpu ? "gpu/" + gpu : "bridge/" + part);
    if (!whole) return std::nullopt;
    const auto sharing = std::ranges::count_if(busy, [&](const auto& other) { return is_on_way(node, other, part); });
    const double own = *whole / static_cast<double>(std::max<std::ptrdiff_t>(sharing, 1));
    least = std::min(least.value_or(own), own);
  }
  return path.size() < 2 ? std::nullopt : least;
}

}  // namespace harness::doctor
