#include "doctor/facts.h"

#include <algorithm>
#include <map>
#include <set>

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

std::optional<double> first_number(std::string_view text) {
  return machine::number(machine::take_word(text));
}

bool has_link_layer(const Facts& node, const Port& port, std::string_view wanted) {
  if (is_efa(node, port)) return false;
  const std::string& layer = node.peek(port.key + "link_layer").text;
  if (layer != "InfiniBand" && layer != "Ethernet") node.doubt(port.key + "link_layer");
  return layer == wanted;
}

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

// The bridge that a device hangs on; "" below the processor, or unknown.
std::string bridge_above(const Facts& node, const std::string& key) {
  if (key.starts_with("bridge/")) {
    const std::string upper = node.text(key + "/above");
    return upper == "host" || upper.empty() ? "" : "bridge/" + upper;
  }
  const std::vector<std::string> path = pci_path(node, key);
  return path.size() < 2 ? "" : "bridge/" + path[path.size() - 2];
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
  if (reading.access == machine::Access::unreadable) doubt(name);
  return reading;
}

const machine::Reading& Facts::peek(const std::string& name) const {
  static const machine::Reading absent;
  const auto at = readings_.find(name);
  return at == readings_.end() ? absent : at->second;
}

std::optional<double> Facts::number(const std::string& name) const {
  const machine::Reading& reading = (*this)[name];
  const auto found = first_number(reading.text);
  if (reading.ok() && !found) doubt(name);
  return found;
}

void Facts::doubt(const std::string& name) const {
  if (asked_in_vain_.name.empty()) asked_in_vain_ = {name, why_silent(peek(name))};
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

std::vector<std::string> silent_among_equals(const Facts& node, const std::string& kind, const std::string& fact) {
  const auto model_of = [&](const std::string& name) {
    static const std::map<std::string_view, std::string_view> by{{"nvml", "name"}, {"gpu", "device"}, {"hca", "board"}};
    return node.peek(fmt::format("{}/{}/{}", kind, name, by.at(kind))).text;
  };
  std::vector<std::string> silent = node.under(kind), told;
  for (const std::string& name : silent) {
    if (node.has(fmt::format("{}/{}/{}", kind, name, fact))) told.push_back(name);
  }
  std::erase_if(silent, [&](const std::string& name) {
    const std::string model = model_of(name);
    const bool is_like_all = kind == "nvml" && model.empty();
    return node.peek(fmt::format("{}/{}/{}", kind, name, fact)).access != machine::Access::absent ||
           std::ranges::none_of(told,
                                [&](const std::string& other) { return is_like_all || model_of(other) == model; });
  });
  return silent;
}

std::string why_silent(const machine::Reading& reading) {
  if (reading.ok()) return reading.text.empty() ? "it is empty" : "it says " + quote(reading.text);
  return reading.why.empty() ? "nothing tells it" : reading.why;
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

// As the kernel's ib_verbs.h names them (ib_port_state).
bool tells_state(const Facts& node, const Port& port) {
  static const std::set<std::string_view> states{"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"};
  return states.contains(node.peek(port.key + "state").text);
}

bool is_active(const Facts& node, const Port& port) {
  if (!tells_state(node, port)) node.doubt(port.key + "state");
  return node.peek(port.key + "state").text == "ACTIVE";
}

bool is_efa(const Facts& node, const Port& port) {
  return node.text("hca/" + port.device + "/vendor") == "0x1d0f";
}

bool has_efa(const Facts& node) {
  const std::vector<Port> ports = ports_of(node);
  return std::ranges::any_of(ports, [&](const Port& port) { return is_efa(node, port); });
}

bool is_infiniband(const Facts& node, const Port& port) {
  return has_link_layer(node, port, "InfiniBand");
}

bool is_roce(const Facts& node, const Port& port) {
  return has_link_layer(node, port, "Ethernet");
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

std::optional<double> lanes(const Facts& node, const std::string& name) {
  const auto width = first_number(node.peek(name).text);
  constexpr double most = 32;
  return width && *width >= 1 && *width <= most ? width : std::nullopt;
}

std::optional<double> gigatransfers(const Facts& node, const std::string& name) {
  const auto speed = first_number(node.peek(name).text);
  static const std::set<double> of_pcie{2.5, 5, 8, 16, 32, 64, 128};  // 1.0 to 7.0
  return speed && of_pcie.contains(*speed) ? speed : std::nullopt;
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
