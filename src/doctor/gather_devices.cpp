// GPUs and adapters on the PCI bus, the bridges above them, and the ports of InfiniBand and RoCE.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include "base/text.h"
#include "doctor/facts.h"
#include "machine/tree.h"
#include "nccl/topology.h"

namespace harness::doctor {
namespace {

using machine::Access;
using machine::Reading;
using machine::Tree;

constexpr std::size_t most_devices = 256;  // limit for each kind of device

// Extended PCI Express capabilities begin after the first 256 bytes; each holds the offset of the next.
constexpr std::size_t extended = 0x100, all_of_it = 4096;
constexpr unsigned acs_capability = 0x000d;
// Bits of its control register that redirect peer-to-peer requests to the root complex: request redirect, completion
// redirect, upstream forwarding (PCI Express Base Specification, 7.7.11.3).
constexpr unsigned acs_redirects = 0x04 | 0x08 | 0x10;

unsigned word_at(const std::string& bytes, std::size_t at) {
  return static_cast<unsigned char>(bytes[at]) | static_cast<unsigned>(static_cast<unsigned char>(bytes[at + 1])) << 8;
}

// A link value, if PCI Express defines it: a device that fell off the bus reports 63 lanes. Hypervisors hide a guest's
// values behind 0, 255 or Unknown. For GPUs and adapters, an absent file counts as unreadable.
Reading of_link(Reading reading, const std::set<double>& possible) {
  const auto number = number_of(reading.text);
  if (reading.access == Access::read && !(number && possible.contains(*number)))
    return {Access::unreadable, {}, why_silent(reading)};
  return reading;
}

// Adds the values of a link and the most that both of its ends support: "width" and "width_of_link", "speed" and
// "speed_of_link". The folder above a device's own is that of its upstream bridge.
void add_link(const Tree& tree, Facts& facts, const std::string& key, const std::string& folder) {
  static const std::set<double> widths{1, 2, 4, 8, 12, 16, 32}, speeds{2.5, 5, 8, 16, 32, 64, 128};
  for (const auto& [name, possible] : {std::pair{"width", widths}, {"speed", speeds}}) {
    Reading now = of_link(tree.line(fmt::format("{}/current_link_{}", folder, name)), possible),
            most = of_link(tree.line(fmt::format("{}/max_link_{}", folder, name)), possible);
    const Reading above = of_link(tree.line(fmt::format("{}/../max_link_{}", folder, name)), possible);
    if (above.ok() && !(number_of(most.text) <= number_of(above.text))) most = above;
    if (is_virtual(facts) && !now.ok()) continue;
    if (now.access == Access::absent && !key.starts_with("bridge/"))
      now = {Access::unreadable, {}, "there is no such file"};
    facts.set(fmt::format("{}/{}", key, name), now);
    facts.set(fmt::format("{}/{}_of_link", key, name), most);
  }
}

// Adds the totals of fatal and of correctable errors; the last line of a file is "TOTAL_ERR_FATAL 0".
void add_errors(const Tree& tree, Facts& facts, const std::string& key, const std::string& folder) {
  for (const auto& [name, file] :
       {std::pair{"/aer_fatal", "aer_dev_fatal"}, {"/aer_correctable", "aer_dev_correctable"}}) {
    const Reading counts = tree.bytes(folder + "/" + file);
    const std::size_t total = counts.text.rfind("TOTAL_ERR_");
    if (!counts.ok() || total == std::string::npos) continue;
    std::string_view rest = std::string_view(counts.text).substr(total);
    rest = rest.substr(0, rest.find('\n'));
    machine::take_word(rest);
    if (const auto count = machine::number(machine::take_word(rest)))
      facts.set(key + name, fmt::format("{:.0f}", *count));
  }
}

void add_device(const Tree& tree, Facts& facts, const std::string& key, const std::string& folder) {
  // A virtual function has the link of its physical one, and does not tell it.
  const std::string physical = folder + "/physfn";
  add_link(tree, facts, key, tree.exists(physical) ? physical : folder);
  add_errors(tree, facts, key, folder);
  facts.set(key + "/path", tree.resolved(folder));
  facts.set(key + "/numa", tree.line(folder + "/numa_node"));
  facts.set(key + "/cpus", tree.line(folder + "/local_cpulist"));
  Reading mode = tree.line(folder + "/iommu_group/type");
  if (mode.access == Access::absent && !tree.exists(folder + "/iommu_group")) mode = {Access::read, "off", {}};
  facts.set(key + "/iommu", mode);
  Reading driver = tree.resolved(folder + "/driver");
  if (driver.ok()) driver.text = driver.text.substr(driver.text.rfind('/') + 1);
  facts.set(key + "/driver", driver.access == Access::absent ? Reading{Access::read, "none", {}} : driver);
}

// Adds the bridges above the devices, each once.
void add_bridges(const Tree& tree, Facts& facts, const std::vector<std::string>& devices) {
  std::set<std::string> done;
  for (const std::string& device : devices) {
    const std::vector<std::string> path = pci_path(facts, device);
    for (std::size_t i = 0; i + 1 < path.size() && done.size() < most_devices; ++i) {
      if (!done.insert(path[i]).second) continue;
      const std::string key = "bridge/" + path[i], folder = "sys/bus/pci/devices/" + path[i];
      // A path alternates: root port, upper port of a switch, its lower port, the next upper port or the device. Root
      // and lower ports have the link of what is below them, which may have fewer lanes: its own facts tell that link.
      if (i % 2 == 1) add_link(tree, facts, key, folder);
      add_errors(tree, facts, key, folder);
      // Peer-to-peer traffic is routed below a switch, so the bits of a root port do not matter.
      if (i > 0) facts.set(key + "/acs", acs_in(tree.bytes(folder + "/config")));
    }
  }
}

// Counters of ports and of their adapters. The last two count messages that were sent again because the other side did
// not answer or had no buffer.
constexpr std::array<std::string_view, 8> counters{"counters/link_downed",
                                                   "counters/link_error_recovery",
                                                   "counters/symbol_error",
                                                   "counters/local_link_integrity_errors",
                                                   "counters/port_rcv_errors",
                                                   "counters/excessive_buffer_overrun_errors",
                                                   "hw_counters/local_ack_timeout_err",
                                                   "hw_counters/rnr_nak_retry_err"};

// The indices in a port's GID table that are RoCE v2 with an IPv4 address: "3, 5", or "none". Empty entries cannot be
// read.
Reading roce_addresses(const Tree& tree, const std::string& folder) {
  const machine::Listing places = tree.names(folder + "/gids");
  if (places.access != Access::read) return {places.access, {}, places.why};
  std::vector<int> found;
  for (const std::string& place : places.names) {
    const auto index = machine::number(place);
    if (!index || *index > 255) continue;
    const Reading address = tree.line(fmt::format("{}/gids/{}", folder, place));
    if (!address.ok() || !address.text.starts_with("0000:0000:0000:0000:0000:ffff:")) continue;
    const Reading type = tree.line(fmt::format("{}/gid_attrs/types/{}", folder, place));
    if (!type.ok() || type.text.empty()) return {Access::unreadable, {}, "the type of an address: " + why_silent(type)};
    if (type.text == "RoCE v2") found.push_back(static_cast<int>(*index));
  }
  std::ranges::sort(found);
  return {Access::read, found.empty() ? "none" : fmt::format("{}", fmt::join(found, ", ")), {}};
}

// The MTU of a port's own interface, which its first address names. An adapter may have further interfaces: those of
// its virtual functions, or of its second port. `others`: the adapter's, of which the first stands in.
Reading interface_mtu(const Tree& tree, const std::string& port, const std::vector<std::string>& others) {
  const auto mtu_of = [](const std::string& name) { return "sys/class/net/" + name + "/mtu"; };
  std::string name = tree.line(port + "/gid_attrs/ndevs/0").text;
  if (name.empty() || !tree.exists(mtu_of(name))) name = others.empty() ? "" : others.front();
  return name.empty() ? Reading() : tree.line(mtu_of(name));
}

// `interfaces`: of the port's adapter.
void add_port(const Tree& tree, Facts& facts, const std::string& key, const std::string& folder,
              const std::vector<std::string>& interfaces) {
  for (const char* file : {"state", "phys_state"}) {
    Reading state = tree.line(folder + "/" + file);
    state.text = machine::port_state_in(state.text);
    facts.set(key + file, state);
  }
  for (const char* file : {"rate", "link_layer", "lid", "sm_lid"})
    facts.set(key + file, tree.line(folder + "/" + file));
  facts.set(key + "pkey", tree.line(folder + "/pkeys/0"));
  for (const std::string_view name : counters)
    facts.set(fmt::format("{}counter/{}", key, name.substr(name.find('/') + 1)),
              tree.line(fmt::format("{}/{}", folder, name)));
  if (facts.text(key + "link_layer") != "Ethernet") return;
  facts.set(key + "roce_addresses", roce_addresses(tree, folder));
  facts.set(key + "interface_mtu", interface_mtu(tree, folder, interfaces));
}

// Adds the bandwidth of an adapter's PCIe link and of its active ports together, in Gb/s.
void add_rates(Facts& facts, const std::string& device) {
  const std::string key = "hca/" + device;
  double ports = 0;
  for (const Port& port : active_ports(facts)) {
    if (port.device == device) ports += number_of(facts.text(port.key + "rate")).value_or(0);
  }
  const Reading &width = facts[key + "/width"], &speed = facts[key + "/speed"];
  if (ports == 0 || width.access == Access::absent || speed.access == Access::absent) return;
  facts.set(key + "/ports_gbps", fmt::format("{:.0f}", ports));
  facts.set(key + "/link_gbps", width.ok() ? speed : width);
  if (width.ok() && speed.ok()) {
    const double bits_per_s = nccl::pcie_bits_per_s(*number_of(speed.text), *number_of(width.text));
    facts.set(key + "/link_gbps", fmt::format("{:.0f}", bits_per_s / 1e9));
  }
}

void add_hca(const Tree& tree, Facts& facts, const std::string& device, const Reading& verbs) {
  const std::string folder = "sys/class/infiniband/" + device, key = "hca/" + device;
  facts.set(key + "/firmware", tree.line(folder + "/fw_ver"));
  facts.set(key + "/board", tree.line(folder + "/board_id"));
  facts.set(key + "/vendor", tree.line(folder + "/device/vendor"));
  facts.set(key + "/verbs", verbs);
  add_device(tree, facts, key, folder + "/device");
  const machine::Listing nets = tree.names(folder + "/device/net"), ports = tree.names(folder + "/ports");
  if (ports.unreadable()) facts.set_unreadable(key + "/ports", ports.why);
  for (const std::string& port : ports.names) {
    if (machine::number(port))
      add_port(tree, facts, fmt::format("port/{}/{}/", device, port), fmt::format("{}/ports/{}", folder, port),
               nets.names);
  }
  add_rates(facts, device);
}

// For each adapter, whether its verbs device exists, which NCCL opens.
std::map<std::string, Reading> verbs_devices(const Tree& tree, const std::vector<std::string>& adapters) {
  const machine::Listing names = tree.names("sys/class/infiniband_verbs");
  const bool hidden = names.unreadable();
  std::map<std::string, Reading> found;
  for (const std::string& adapter : adapters)
    found[adapter] = hidden ? Reading{names.access, {}, names.why} : Reading{Access::read, "no", {}};
  for (const std::string& name : names.names) {
    if (name.starts_with("uverbs"))
      found[tree.line("sys/class/infiniband_verbs/" + name + "/ibdev").text] =
          device_in(tree, "dev/infiniband/" + name);
  }
  return found;
}

}  // namespace

Reading acs_in(const Reading& configuration) {
  if (!configuration.ok()) return configuration;
  const std::string& bytes = configuration.text;
  if (bytes.size() <= extended) return {Access::unreadable, {}, "the kernel shows it to root only"};
  std::size_t at = extended;
  for (std::size_t seen = 0; seen < all_of_it / 8 && at >= extended && at + 8 <= bytes.size(); ++seen) {
    if (word_at(bytes, at) == acs_capability)
      return {Access::read, (word_at(bytes, at + 6) & acs_redirects) != 0 ? "on" : "off", {}};
    at = word_at(bytes, at + 2) >> 4;
  }
  return {Access::read, "off", {}};
}

void gather_pci(const Tree& tree, Facts& facts) {
  const machine::Listing all = tree.names("sys/bus/pci/devices");
  if (all.unreadable()) facts.set_unreadable("pci", all.why);
  std::vector<std::string> devices;
  for (const std::string& address : all.names) {
    const std::string folder = "sys/bus/pci/devices/" + address;
    const Reading kind = tree.line(folder + "/class");
    if (kind.unreadable()) facts.set("pci", kind);
    const bool display = kind.text.starts_with("0x0300") || kind.text.starts_with("0x0302");
    if (!display || tree.line(folder + "/vendor").text != "0x10de" || devices.size() == most_devices) continue;
    const std::string key = "gpu/" + address;
    devices.push_back(key);
    facts.set(key + "/device", tree.line(folder + "/device"));
    add_device(tree, facts, key, folder);
  }
  add_bridges(tree, facts, devices);
}

void gather_ports(const Tree& tree, Facts& facts) {
  const machine::Listing hcas = tree.names("sys/class/infiniband");
  if (hcas.unreadable()) facts.set_unreadable("hcas", hcas.why);
  std::map<std::string, Reading> verbs = verbs_devices(tree, hcas.names);
  const bool any_given = std::ranges::any_of(verbs, [](const auto& entry) { return entry.second.text == "yes"; });
  for (auto& [device, reading] : verbs) {
    if (any_given && reading.text == "no" && is_container(facts)) reading.text = not_given;
  }
  std::vector<std::string> devices;
  for (const std::string& device : hcas.names) {
    if (devices.size() == most_devices) break;
    devices.push_back("hca/" + device);
    add_hca(tree, facts, device, verbs[device]);
  }
  add_bridges(tree, facts, devices);
  const machine::Listing nets = tree.names("sys/class/net");
  if (nets.unreadable()) facts.set_unreadable("net", nets.why);
  for (std::size_t i = 0; i < std::min(nets.names.size(), most_devices); ++i) {
    facts.set("net/" + nets.names[i] + "/state", tree.line("sys/class/net/" + nets.names[i] + "/operstate"));
  }
}

}  // namespace harness::doctor
