#include "doctor/facts.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/text.h"
#include "machine/tree.h"
#include "nccl/topology.h"

namespace harness::doctor {
namespace {

bool is_pci_address(std::string_view name) {  // 0000:1b:00.0
  const auto digits = [&](std::size_t from, std::size_t count) {
    return name.size() >= from + count &&
           std::ranges::all_of(name.substr(from, count), [](unsigned char c) { return std::isxdigit(c) != 0; });
  };
  const std::size_t colon = name.find(':');
  if (colon != 4 && colon != 5) return false;
  return name.size() == colon + 8 && digits(0, colon) && digits(colon + 1, 2) && name[colon + 3] == ':' &&
         digits(colon + 4, 2) && name[colon + 6] == '.' && digits(colon + 7, 1);
}

}  // namespace

void Facts::set(const std::string& name, machine::Reading reading) {
  if (reading.access != machine::Access::absent) readings_[name] = std::move(reading);
}

void Facts::merge(const Facts& others) {
  for (const auto& [name, reading] : others.readings_) readings_[name] = reading;
}

const machine::Reading& Facts::operator[](const std::string& name) const {
  const machine::Reading& reading = peek(name);
  if (reading.access == machine::Access::unreadable && asked_in_vain_.empty()) asked_in_vain_ = name;
  return reading;
}

const machine::Reading& Facts::peek(const std::string& name) const {
  static const machine::Reading absent;
  const auto at = readings_.find(name);
  return at == readings_.end() ? absent : at->second;
}

std::optional<double> Facts::number(const std::string& name) const {
  const std::string& whole = (*this)[name].text;
  std::string_view rest = whole;
  return machine::number(machine::take_word(rest));
}

std::vector<std::string> Facts::under(const std::string& prefix) const {
  std::vector<std::string> names;
  const std::string start = prefix + "/";
  for (auto at = readings_.lower_bound(start); at != readings_.end() && at->first.starts_with(start); ++at) {
    const std::string_view rest = std::string_view(at->first).substr(start.size());
    names.emplace_back(rest.substr(0, rest.find('/')));
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

bool told_nothing(const Facts& node) {
  return std::ranges::none_of(node, [](const auto& fact) { return fact.second.ok(); });
}

std::string why_nothing(const Facts& node) {
  return node.size() == 0 ? "none of the kernel's files is there" : node.begin()->second.why;
}

bool is_virtual(const Facts& node) {
  return node.text("os/virtual") == "yes";
}

bool is_arm(const Facts& node) {
  return node.text("os/processor") == "arm";
}

bool is_container(const Facts& node) {
  return node.text("os/container") == "yes";
}

bool has_gpus(const Facts& node) {
  return node.any("gpu") || node.any("driver/gpu") || node.any("nvml");
}

std::vector<std::string> gpus_of(const Facts& node) {
  return node.under("gpu");
}

std::string gpu_model(const Facts& node, const std::string& gpu) {
  const std::string model = node.text("driver/gpu/" + gpu);
  return model.empty() ? node.text("nvml/" + gpu + "/name") : model;
}

// NVIDIA numbers its chips upwards: A100 is 0x20b0, TU116 alone is a later number of an older chip.
bool is_older_than_ampere(const Facts& node, const std::string& gpu) {
  const std::string& text = node.text("gpu/" + gpu + "/device");
  if (!text.starts_with("0x")) return false;
  const auto number = number_in<unsigned>(std::string_view(text).substr(2), 16);
  return number && (*number < 0x2080 || (*number >= 0x2100 && *number < 0x2200));
}

bool is_geforce(const std::string& model) {
  return model.find("GeForce") != std::string::npos;
}

bool is_rack_scale(const std::string& model) {
  return model.find("GB200") != std::string::npos || model.find("GB300") != std::string::npos;
}

std::string nvlink_domain_of(const Facts& node, const std::string& gpu) {
  const std::string cluster = node.text("nvml/" + gpu + "/fabric_cluster");
  return cluster.empty() ? "" : fmt::format("{}, clique {}", cluster, node.text("nvml/" + gpu + "/fabric_clique"));
}

std::vector<Port> ports_of(const Facts& node) {
  std::vector<Port> ports;
  for (const std::string& device : node.under("port")) {
    for (const std::string& port : node.under("port/" + device)) {
      ports.push_back({device, port, fmt::format("port/{}/{}/", device, port)});
    }
  }
  return ports;
}

bool is_active(const Facts& node, const Port& port) {
  return node.text(port.key + "state") == "ACTIVE";
}

bool is_efa(const Facts& node, const Port& port) {
  return node.text("hca/" + port.device + "/vendor") == "0x1d0f";
}

bool has_efa(const Facts& node) {
  const std::vector<Port> ports = ports_of(node);
  return std::ranges::any_of(ports, [&](const Port& port) { return is_efa(node, port); });
}

bool is_roce(const Facts& node, const Port& port) {
  return node.text(port.key + "link_layer") == "Ethernet" && !is_efa(node, port);
}

std::vector<Port> real_ports(const Facts& node) {
  std::vector<Port> ports = ports_of(node);
  std::erase_if(ports, [&](const Port& port) { return is_efa(node, port); });
  return ports;
}

std::vector<Port> active_ports(const Facts& node) {
  std::vector<Port> ports = real_ports(node);
  std::erase_if(ports, [&](const Port& port) { return !is_active(node, port); });
  return ports;
}

std::vector<std::string> pci_path(const Facts& node, const std::string& device_key) {
  std::vector<std::string> path;
  const std::string whole = node.text(device_key + "/path");
  for (const std::string_view part : split(whole, '/')) {
    if (is_pci_address(part)) path.emplace_back(part);
  }
  return path;
}

namespace {

// The rate of the link between a device or bridge and the bridge above it. One end alone would promise too much.
std::optional<double> link_bytes_per_s(const Facts& node, const std::string& key) {
  if (!gigatransfers(node, key + "/max_speed") || !lanes(node, key + "/max_width")) return std::nullopt;
  const auto speed = both_ends(node, key, "/max_speed", gigatransfers),
             width = both_ends(node, key, "/max_width", lanes);
  return nccl::pcie_bits_per_s(*speed, *width) / 8;
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
