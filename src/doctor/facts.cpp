#include "doctor/facts.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>

#include "base/text.h"
#include "machine/tree.h"

namespace harness::doctor {
namespace {

bool has_link_layer(const Facts& node, const Port& port, std::string_view wanted) {
  if (is_efa(node, port)) return false;
  const std::string& layer = node.peek(port.key + "link_layer").text;
  if (layer != "InfiniBand" && layer != "Ethernet") node.doubt(port.key + "link_layer");
  return layer == wanted;
}

}  // namespace

void Facts::set(const std::string& name, machine::Reading reading) {
  if (reading.access != machine::Access::absent) readings_[name] = std::move(reading);
}

const machine::Reading& Facts::operator[](const std::string& name) const {
  const machine::Reading& reading = peek(name);
  if (reading.unreadable()) doubt(name);
  return reading;
}

const machine::Reading& Facts::peek(const std::string& name) const {
  static const machine::Reading absent;
  const auto at = readings_.find(name);
  return at == readings_.end() ? absent : at->second;
}

std::optional<double> Facts::number(const std::string& name) const {
  const machine::Reading& reading = (*this)[name];
  const auto found = number_of(reading.text);
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

bool is_grace(const Facts& node) {
  return node.text("os/processor") == "arm";
}

bool is_container(const Facts& node) {
  return node.text("os/container") == "yes";
}

bool has_gpus(const Facts& node) {
  return node.any("gpu") || node.any("driver/gpu") || node.any("nvml");
}

bool has_geforce(const Facts& node) {
  const std::vector<std::string> gpus = node.under("gpu");
  if (gpus.empty()) return false;
  const std::string by_driver = node.text("driver/gpu/" + gpus.front());
  const std::string model = by_driver.empty() ? node.text("nvml/" + gpus.front() + "/name") : by_driver;
  return model.find("GeForce") != std::string::npos;
}

std::size_t count_gpus(const Facts& node) {
  return std::max({node.under("gpu").size(), node.under("driver/gpu").size(), node.under("nvml").size()});
}

std::string why_silent(const machine::Reading& reading) {
  if (reading.ok()) return reading.text.empty() ? "it is empty" : "it says " + quote(reading.text);
  return reading.why.empty() ? "nothing tells it" : reading.why;
}

std::optional<double> number_of(std::string_view value) {
  const std::string_view word = machine::take_word(value);
  if (word == "unlimited") return std::numeric_limits<double>::infinity();
  if (word.starts_with("0x")) return number_in<std::uint64_t>(word.substr(2), 16);
  const auto number = number_in<double>(word);
  return number && std::isfinite(*number) ? number : std::nullopt;
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
    const bool is_address = std::ranges::count(part, ':') == 2 && std::ranges::count(part, '.') == 1;  // 0000:1b:00.0
    if (is_address) path.emplace_back(part);
  }
  return path;
}

}  // namespace harness::doctor
