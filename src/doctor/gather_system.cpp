#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <thread>

#include "base/error.h"
#include "base/text.h"
#include "doctor/gather.h"
#include "machine/cpus.h"
#include "machine/tree.h"

namespace harness::doctor {
namespace {

using machine::Access;
using machine::Reading;
using machine::Tree;

void add_line(const Tree& tree, Facts& facts, const std::string& name, const std::string& path) {
  facts.set(name, tree.line(path));
}

// The values of all CPUs, with how often each occurs: "performance 126, powersave 2".
Reading said_by_cpus(const Tree& tree, const machine::Listing& cpus, const std::string& file) {
  std::map<std::string, int> count;
  for (const std::string& cpu : cpus.names) {
    if (!cpu.starts_with("cpu") || !machine::number(cpu.substr(3))) continue;
    Reading said = tree.line(fmt::format("sys/devices/system/cpu/{}/{}", cpu, file));
    if (said.access == Access::unreadable) return said;
    if (said.ok() && said.text.empty()) return {Access::unreadable, {}, why_silent(said)};
    if (said.ok()) ++count[said.text];
  }
  if (count.empty()) return {};
  if (count.size() == 1) return {Access::read, count.begin()->first, {}};
  std::vector<std::string> parts;
  for (const auto& [word, cpus_with_it] : count) parts.push_back(fmt::format("{} {}", word, cpus_with_it));
  return {Access::read, join(parts, ", "), {}};
}

void add_processor(const Tree& tree, Facts& facts) {
  const Reading info = tree.head("proc/cpuinfo", 16 << 10);  // the first CPU: of many the file has a megabyte
  if (info.access == Access::unreadable) return facts.set("os/processor", info);
  const std::string model = machine::value_of(info.text, "model name");
  const bool arm = !machine::value_of(info.text, "CPU implementer").empty();
  if (arm || !model.empty()) facts.set("os/processor", arm ? "arm" : "x86");
  if (!model.empty()) facts.set("cpu/model", model);
  const std::string flags = " " + machine::value_of(info.text, "flags") + " ";
  const bool guest = flags.find(" hypervisor ") != std::string::npos || tree.exists("sys/hypervisor/type") ||
                     tree.line("sys/class/dmi/id/product_name").text.find("Virtual") != std::string::npos;
  if (info.ok()) facts.set("os/virtual", guest ? "yes" : "no");
}

void add_container(const Tree& tree, Facts& facts) {
  const Reading group = tree.bytes("proc/1/cgroup");
  const bool inside = tree.exists(".dockerenv") || tree.exists("run/.containerenv") ||
                      std::ranges::any_of(std::initializer_list<const char*>{"docker", "kubepods", "containerd", "lxc"},
                                          [&](const char* word) { return group.text.find(word) != std::string::npos; });
  if (inside || group.ok()) facts.set("os/container", inside ? "yes" : "no");
}

void add_memory(const Tree& tree, Facts& facts) {
  const Reading info = tree.bytes("proc/meminfo");
  if (info.access == Access::unreadable) facts.set("memory/total_kb", info);
  for (const auto& [name, key] : {std::pair{"memory/total_kb", "MemTotal"},
                                  {"memory/swap_kb", "SwapTotal"},
                                  {"memory/swap_free_kb", "SwapFree"}}) {
    const std::string value = machine::value_of(info.text, key);
    std::string_view rest = value;
    if (const auto number = machine::number(machine::take_word(rest))) facts.set(name, fmt::format("{:.0f}", *number));
  }
  add_line(tree, facts, "memory/numa_balancing", "proc/sys/kernel/numa_balancing");
  add_line(tree, facts, "memory/numa_nodes", "sys/devices/system/node/online");
}

void add_quota(const Tree& tree, Facts& facts) {
  const machine::GroupLimit quota = machine::cpu_quota(tree);
  const bool hidden = quota.access == Access::unreadable, known = quota.value > 0;
  if (hidden) facts.set_unreadable(known ? "cpu/other_quotas" : "cpu/quota", quota.why);
  if (known || quota.access == Access::read)
    facts.set("cpu/quota", known ? fmt::format("{:.2f}", quota.value) : "none");
}

// Whether the CPUs could raise their clock beyond the nominal one if boost were on, by their scale of performance
// (ACPI CPPC). Where the highest step is the nominal one there is nothing to turn on.
Reading boost_headroom(const Tree& tree, const machine::Listing& cpus) {
  bool told = false;
  for (const std::string& cpu : cpus.names) {
    if (!cpu.starts_with("cpu") || !machine::number(cpu.substr(3))) continue;
    const std::string folder = fmt::format("sys/devices/system/cpu/{}/acpi_cppc/", cpu);
    const Reading highest = tree.line(folder + "highest_perf"), nominal = tree.line(folder + "nominal_perf");
    for (const Reading& reading : {highest, nominal}) {
      if (reading.access == Access::unreadable) return reading;
    }
    const auto most = machine::number(highest.text), usual = machine::number(nominal.text);
    if (!most || !usual) continue;
    told = true;
    if (*most > *usual) return {Access::read, "yes", {}};
  }
  return told ? Reading{Access::read, "no", {}} : Reading{};
}

// The sum of all CPUs' columns and the one that other guests of the host took, in ticks: "cpu  user nice system idle
// iowait irq softirq steal …"; what follows is part of user and nice.
struct Ticks {
  double all = 0, stolen = 0;
};
std::optional<Ticks> ticks_in(const Reading& stat) {
  std::string_view rest = stat.text;
  if (machine::take_word(rest) != "cpu") return std::nullopt;
  constexpr int columns = 8, steal = 7;
  Ticks ticks;
  for (int column = 0; column < columns; ++column) {
    const auto value = machine::number(machine::take_word(rest));
    if (!value) return std::nullopt;
    ticks.all += *value;
    if (column == steal) ticks.stolen = *value;
  }
  return ticks;
}

// The share of the CPUs' time that went to other guests: since the node was started, and of a guest in a tenth of a
// second.
void add_steal(const Tree& tree, Facts& facts) {
  const auto look = [&] { return tree.line("proc/stat"); };
  const Reading first = look();
  if (first.access == Access::unreadable) facts.set("cpu/steal_since_start", first);
  const auto before = ticks_in(first);
  if (!before || before->all <= 0) return;
  facts.set("cpu/steal_since_start", fmt::format("{:.4f}", before->stolen / before->all));
  if (!tree.is_own_machine() || facts.text("os/virtual") != "yes") return;
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto after = ticks_in(look());
  if (after && after->all > before->all)
    facts.set("cpu/steal", fmt::format("{:.4f}", (after->stolen - before->stolen) / (after->all - before->all)));
}

constexpr std::size_t most_devices = 256;  // of one kind that are looked at

// The PCI Express capabilities' links lie beyond the first 256 bytes, each with the place of the next.
constexpr std::size_t extended = 0x100, all_of_it = 4096;
constexpr unsigned acs_capability = 0x000d;

unsigned word_at(const std::string& bytes, std::size_t at) {
  return static_cast<unsigned char>(bytes[at]) | static_cast<unsigned>(static_cast<unsigned char>(bytes[at + 1])) << 8;
}

void add_link(const Tree& tree, Facts& facts, const std::string& key, const std::string& folder) {
  facts.set(key + "/width", tree.line(folder + "/current_link_width"));
  facts.set(key + "/max_width", tree.line(folder + "/max_link_width"));
  facts.set(key + "/speed", tree.line(folder + "/current_link_speed"));
  facts.set(key + "/max_speed", tree.line(folder + "/max_link_speed"));
}

// The sum of fatal errors: its last line is "TOTAL_ERR_FATAL 0".
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
  add_link(tree, facts, key, folder);
  add_errors(tree, facts, key, folder);
  facts.set(key + "/path", tree.resolved(folder));
  facts.set(key + "/numa", tree.line(folder + "/numa_node"));
  facts.set(key + "/cpus", tree.line(folder + "/local_cpulist"));
  facts.set(key + "/iommu", tree.line(folder + "/iommu_group/type"));
  const Reading driver = tree.resolved(folder + "/driver");
  if (driver.ok()) facts.set(key + "/driver", driver.text.substr(driver.text.rfind('/') + 1));
}

// Adds the bridges that /sys shows above the devices, each once.
void add_bridges(const Tree& tree, Facts& facts, const std::vector<std::string>& devices) {
  std::set<std::string> done;
  for (const std::string& device : devices) {
    const std::vector<std::string> path = pci_path(facts, device);
    for (std::size_t i = 0; i + 1 < path.size() && done.size() < most_devices; ++i) {
      if (!done.insert(path[i]).second) continue;
      const std::string key = "bridge/" + path[i], folder = "sys/bus/pci/devices/" + path[i];
      add_link(tree, facts, key, folder);
      add_errors(tree, facts, key, folder);
      facts.set(key + "/acs", acs_control(tree.bytes(folder + "/config")));
      facts.set(key + "/above", i == 0 ? "host" : path[i - 1]);
    }
  }
}

const std::vector<std::string> counted_events{"link_downed",     "link_error_recovery",
                                              "symbol_error",    "local_link_integrity_errors",
                                              "port_rcv_errors", "excessive_buffer_overrun_errors"};

// Counted by the adapter itself: messages sent again because the other side did not answer, or had no room.
const std::vector<std::string> counted_by_hardware{"local_ack_timeout_err", "rnr_nak_retry_err"};

// Which places of the port's table of addresses are RoCE v2 with an IPv4 address: "3, 5". An empty place cannot be
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
  return {Access::read, fmt::format("{}", fmt::join(found, ", ")), {}};
}

void add_port(const Tree& tree, Facts& facts, const std::string& key, const std::string& folder) {
  for (const char* file : {"state", "phys_state"}) {
    Reading state = tree.line(folder + "/" + file);
    state.text = machine::port_state_in(state.text);
    facts.set(key + file, state);
  }
  for (const char* file : {"rate", "link_layer", "lid", "sm_lid"})
    facts.set(key + file, tree.line(folder + "/" + file));
  facts.set(key + "pkey", tree.line(folder + "/pkeys/0"));
  for (const std::string& name : counted_events)
    facts.set(fmt::format("{}counter/{}", key, name), tree.line(fmt::format("{}/counters/{}", folder, name)));
  for (const std::string& name : counted_by_hardware)
    facts.set(fmt::format("{}counter/{}", key, name), tree.line(fmt::format("{}/hw_counters/{}", folder, name)));
  if (facts.text(key + "link_layer") == "Ethernet") facts.set(key + "roce_addresses", roce_addresses(tree, folder));
}

void add_hca(const Tree& tree, Facts& facts, const std::string& device, const Reading& verbs) {
  const std::string folder = "sys/class/infiniband/" + device, key = "hca/" + device;
  facts.set(key + "/firmware", tree.line(folder + "/fw_ver"));
  facts.set(key + "/board", tree.line(folder + "/board_id"));
  facts.set(key + "/vendor", tree.line(folder + "/device/vendor"));
  facts.set(key + "/verbs", verbs);
  add_device(tree, facts, key, folder + "/device");
  const machine::Listing nets = tree.names(folder + "/device/net");
  if (!nets.names.empty()) facts.set(key + "/mtu", tree.line("sys/class/net/" + nets.names.front() + "/mtu"));
  const machine::Listing ports = tree.names(folder + "/ports");
  if (ports.access == Access::unreadable) facts.set_unreadable(key + "/ports", ports.why);
  for (const std::string& port : ports.names) {
    if (machine::number(port))
      add_port(tree, facts, fmt::format("port/{}/{}/", device, port), fmt::format("{}/ports/{}", folder, port));
  }
}

// By adapter, whether there is a device that a process can open, as NCCL does.
std::map<std::string, Reading> verbs_devices(const Tree& tree, const std::vector<std::string>& adapters) {
  const machine::Listing names = tree.names("sys/class/infiniband_verbs");
  const bool hidden = names.access == Access::unreadable;
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

void gather_system(const Tree& tree, Facts& facts) {
  add_line(tree, facts, "os/kernel", "proc/sys/kernel/osrelease");
  add_processor(tree, facts);
  add_container(tree, facts);
  add_memory(tree, facts);
  add_quota(tree, facts);
  add_steal(tree, facts);
  const std::string cpus = "sys/devices/system/cpu/";
  const machine::Listing listed = tree.names("sys/devices/system/cpu");
  if (listed.access == Access::unreadable) facts.set_unreadable("cpu/governor", listed.why);
  facts.set("cpu/governor", said_by_cpus(tree, listed, "cpufreq/scaling_governor"));
  facts.set("cpu/preference", said_by_cpus(tree, listed, "cpufreq/energy_performance_preference"));
  add_line(tree, facts, "cpu/no_turbo", cpus + "intel_pstate/no_turbo");
  add_line(tree, facts, "cpu/boost", cpus + "cpufreq/boost");
  facts.set("cpu/boost_headroom", boost_headroom(tree, listed));
  add_line(tree, facts, "cpu/online", cpus + "online");
  add_line(tree, facts, "cpu/load", "proc/loadavg");
}

Reading acs_control(const Reading& configuration) {
  if (!configuration.ok()) return configuration;
  const std::string& bytes = configuration.text;
  if (bytes.size() <= extended) return {Access::unreadable, {}, "the kernel shows it to root only"};
  std::size_t at = extended;
  for (std::size_t seen = 0; seen < all_of_it / 8 && at >= extended && at + 8 <= bytes.size(); ++seen) {
    if (word_at(bytes, at) == acs_capability)
      return {Access::read, fmt::format("0x{:04x}", word_at(bytes, at + 6)), {}};
    at = word_at(bytes, at + 2) >> 4;
  }
  return {Access::read, "none", {}};
}

double largest_bar_bytes(const std::string& resource) {
  constexpr unsigned long long prefetchable = 0x2000;
  double largest = 0;
  std::string_view rest = resource;
  while (!rest.empty()) {
    std::string_view line = machine::take_line(rest);
    const auto value = [&] { return std::strtoull(std::string(machine::take_word(line)).c_str(), nullptr, 16); };
    const unsigned long long start = value(), end = value(), flags = value();
    if ((flags & prefetchable) == 0 || end <= start) continue;
    largest = std::max(largest, static_cast<double>(end - start) + 1);
  }
  return largest;
}

void gather_pci(const Tree& tree, Facts& facts) {
  const machine::Listing all = tree.names("sys/bus/pci/devices");
  if (all.access == Access::unreadable) facts.set_unreadable("pci", all.why);
  std::vector<std::string> devices;
  for (const std::string& address : all.names) {
    const std::string folder = "sys/bus/pci/devices/" + address;
    const Reading kind = tree.line(folder + "/class");
    if (kind.access == Access::unreadable) facts.set("pci", kind);
    const bool display = kind.text.starts_with("0x0300") || kind.text.starts_with("0x0302");
    if (!display || tree.line(folder + "/vendor").text != "0x10de" || devices.size() == most_devices) continue;
    const std::string key = "gpu/" + address;
    devices.push_back(key);
    facts.set(key + "/device", tree.line(folder + "/device"));
    add_device(tree, facts, key, folder);
    if (const Reading resource = tree.bytes(folder + "/resource"); resource.ok()) {
      const double bytes = largest_bar_bytes(resource.text);
      facts.set(key + "/bar_bytes", bytes > 0 ? Reading{Access::read, fmt::format("{:.0f}", bytes), {}}
                                              : Reading{Access::unreadable, {}, "the file names no window"});
    }
  }
  add_bridges(tree, facts, devices);
}

void gather_ports(const Tree& tree, Facts& facts) {
  const machine::Listing hcas = tree.names("sys/class/infiniband");
  if (hcas.access == Access::unreadable) facts.set_unreadable("hcas", hcas.why);
  std::map<std::string, Reading> verbs = verbs_devices(tree, hcas.names);
  std::vector<std::string> devices;
  for (const std::string& device : hcas.names) {
    if (devices.size() == most_devices) break;
    devices.push_back("hca/" + device);
    add_hca(tree, facts, device, verbs[device]);
  }
  add_bridges(tree, facts, devices);
  const machine::Listing nets = tree.names("sys/class/net");
  if (nets.access == Access::unreadable) facts.set_unreadable("net", nets.why);
  for (std::size_t i = 0; i < std::min(nets.names.size(), most_devices); ++i) {
    facts.set("net/" + nets.names[i] + "/state", tree.line("sys/class/net/" + nets.names[i] + "/operstate"));
  }
}

}  // namespace harness::doctor
