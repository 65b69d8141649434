#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "doctor/gather.h"
#include "machine/conditions.h"
#include "machine/tree.h"

namespace harness::doctor {
namespace {

using machine::Access;
using machine::Reading;
using machine::Tree;

// Two bits of NVML's mask for each question (nvmlGpuFabricInfo_v3_t in nvml.h); 1: yes.
std::string fabric_trouble(std::uint64_t health) {
  std::vector<std::string> troubles;
  unsigned shift = 0;
  for (const char* words : {"less bandwidth", "routes are being repaired", "routes are broken", "accesses time out"}) {
    if (((health >> shift) & 3u) == 1) troubles.emplace_back(words);
    shift += 2;
  }
  return troubles.empty() ? "none" : join(troubles, ", ");
}

// NVML's bits: hardware slowdown, hardware thermal slowdown, power brake, software thermal; clocks by setting.
void add_slowdown(std::uint64_t reasons, const std::string& key, Facts& facts) {
  constexpr std::uint64_t harmful = 0x8 | 0x40 | 0x80 | 0x20, by_setting = 0x2;
  facts.set(key + "slowed_by", (reasons & harmful) != 0 ? machine::harmful_throttling(reasons) : "nothing");
  facts.set(key + "clocks_set", (reasons & by_setting) != 0 ? "yes" : "no");
}

// The names of processes; the kernel cuts them after 15 letters. That of the first one is everybody's to read unless
// /proc is mounted with hidepid, which hides all that are not one's own; a copy of /proc may have none.
void add_daemons(const Tree& tree, Facts& facts) {
  const machine::Listing processes = tree.names("proc");
  if (processes.access != Access::read) {
    facts.set_unreadable("daemon", processes.why.empty() ? "there is no /proc" : processes.why);
  } else if (std::ranges::none_of(processes.names,
                                  [](const auto& name) { return machine::number(name).has_value(); })) {
    facts.set_unreadable("daemon", "/proc shows no process");
  } else if (!tree.line("proc/1/comm").ok()) {
    facts.set_unreadable("daemon", "/proc does not show the processes of others (hidepid)");
  }
  const std::map<std::string, std::string> known{{"nv-fabricmanage", "daemon/fabric_manager"},
                                                 {"nvidia-persiste", "daemon/persistence"}};
  for (const std::string& process : processes.names) {
    if (!machine::number(process)) continue;
    const auto found = known.find(tree.line("proc/" + process + "/comm").text);
    if (found != known.end()) facts.set(found->second, "yes");
  }
}

// NVIDIA's version line: "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build …". The
// version is the first word of digits and dots.
std::string version_in(std::string_view line) {
  while (!line.empty()) {
    const std::string_view word = machine::take_word(line);
    if (word.find('.') == std::string_view::npos) continue;
    if (word.find_first_not_of("0123456789.") == std::string_view::npos) return std::string(word);
  }
  return "";
}

// The fabric manager logs its version when it starts: "… Fabric Manager version 570.86.15 is running …".
void add_fabric_manager(const Tree& tree, Facts& facts) {
  const Reading log = tree.bytes("var/log/fabricmanager.log");
  if (!log.ok()) return facts.set("fabric_manager/version", log);
  constexpr std::string_view words = "Fabric Manager version ";
  const std::size_t at = log.text.rfind(words);
  if (at == std::string::npos)
    return facts.set_unreadable("fabric_manager/version", "/var/log/fabricmanager.log does not name it");
  std::string_view rest = std::string_view(log.text).substr(at + words.size());
  facts.set("fabric_manager/version", std::string(machine::take_word(rest)));
}

void add_nccl_file(const Tree& tree, Facts& facts, const std::string& path) {
  const Reading file = tree.bytes(path);
  if (file.access == Access::unreadable) facts.set("nccl_conf", file);
  std::string_view rest = file.text;
  while (!rest.empty()) {
    const std::string line(trim(machine::take_line(rest)));
    const std::size_t equals = line.find('=');
    if (line.starts_with('#') || equals == std::string::npos) continue;
    facts.set("nccl_conf/" + std::string(trim(line.substr(0, equals))), std::string(trim(line.substr(equals + 1))));
  }
}

// Distributions install the kernel's options. Without them the version of the kernel must do.
void add_kernel_options(const Tree& tree, Facts& facts) {
  const Reading options = tree.head("boot/config-" + tree.line("proc/sys/kernel/osrelease").text, 1 << 20);
  if (options.access == Access::unreadable) return facts.set("kernel/dmabuf", options);
  if (!options.ok()) return;
  const bool has = options.text.find("\nCONFIG_DMA_SHARED_BUFFER=y") != std::string::npos;
  facts.set("kernel/dmabuf", has ? "yes" : "no");
}

// The number and the device of a message such as "NVRM: Xid (PCI:0000:1b:00): 79, pid=1"; the device is "" for others.
struct Fault {
  std::string device, number;
};
Fault fault_in(std::string_view line, std::string_view mark) {
  const std::size_t at = line.find(mark);
  if (at == std::string_view::npos) return {};
  const std::string_view after = line.substr(at + mark.size());
  const std::size_t close = after.find("): ");
  if (close == std::string_view::npos || close > 32) return {};
  const std::string_view number = after.substr(close + 3);
  const std::size_t digits = std::min(number.find_first_not_of("0123456789"), number.size());
  if (digits == 0 || digits > 5) return {};
  return {std::string(after.substr(0, close)), std::string(number.substr(0, digits))};
}

// The log's records one by one, as far as there are any now. Each read returns one.
Reading kernel_log_of_this_machine() {
  constexpr std::size_t most_records = 65536, longest = 8192;
  const Descriptor log_of_kernel(::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!log_of_kernel) {
    return {errno == ENOENT ? Access::absent : Access::unreadable,
            {},
            errno == EPERM || errno == EACCES ? "it needs root or kernel.dmesg_restrict=0" : std::strerror(errno)};
  }
  std::string log;
  std::array<char, longest> record{};
  for (std::size_t i = 0; i < most_records; ++i) {
    const ssize_t n = ::read(log_of_kernel.number(), record.data(), record.size());
    if (n < 0 && (errno == EPIPE || errno == EINTR)) continue;  // overwritten meanwhile: the next one
    if (n <= 0) break;
    log.append(record.data(), static_cast<std::size_t>(n));
  }
  return {Access::read, std::move(log), {}};
}

// "… mlx5_core 0000:9a:00.0 ens2np0: Link down": the driver and its device.
std::string device_before(std::string_view message, std::string_view driver) {
  std::string_view rest = message.substr(message.find(driver) + driver.size());
  std::string_view device = machine::take_word(rest);
  while (device.ends_with(':')) device.remove_suffix(1);
  return std::string(device);
}

constexpr std::size_t most_folders = 256;

// The folders of a configuration of ldconfig, a line each. Other lines than "include …" and comments are folders.
void add_folders_of(const Tree& tree, const std::string& path, std::vector<std::string>& folders) {
  const machine::Reading file = tree.bytes(path);
  std::string_view rest = file.text;
  while (!rest.empty()) {
    const std::string_view line = trim(machine::take_line(rest));
    if (line.starts_with('/')) folders.emplace_back(line);
  }
}

}  // namespace

void gather_driver(const Tree& tree, Facts& facts) {
  Reading version = tree.bytes("proc/driver/nvidia/version");
  if (version.ok()) {
    facts.set("driver/open", version.text.find("Open Kernel Module") != std::string::npos ? "yes" : "no");
    version.text = version_in(std::string_view(version.text).substr(0, version.text.find('\n')));
  }
  facts.set("driver/version", version);
  const machine::Listing gpus = tree.names("proc/driver/nvidia/gpus");
  if (gpus.access == Access::unreadable) facts.set_unreadable("driver/gpus", gpus.why);
  for (const std::string& gpu : gpus.names) {
    const Reading information = tree.bytes("proc/driver/nvidia/gpus/" + gpu + "/information");
    facts.set("driver/gpu/" + lower(gpu), machine::value_of(information.text, "Model"));
  }
  const Reading parameters = tree.bytes("proc/driver/nvidia/params");
  if (const std::string mode = machine::value_of(parameters.text, "EnablePCIERelaxedOrderingMode"); !mode.empty())
    facts.set("driver/relaxed_ordering", mode);
  // As NCCL looks for them (src/transport/net_ib/gdr.cc).
  for (const char* path : {"sys/module/nvidia_peermem/version", "sys/kernel/mm/memory_peers/nv_mem/version",
                           "sys/kernel/mm/memory_peers/nv_mem_nc/version"}) {
    if (tree.exists(path)) facts.set("driver/peermem", path);
  }
  if (tree.exists("sys/module/gdrdrv")) {
    Reading device = device_in(tree, "dev/gdrdrv");
    if (device.text == "no") device.text = "no device";
    facts.set("driver/gdrcopy", device);
  }
  add_kernel_options(tree, facts);
  add_daemons(tree, facts);
  add_fabric_manager(tree, facts);
  add_nccl_file(tree, facts, "etc/nccl.conf");
  for (const std::string_view name : variables_with_files)
    add_named_file(tree, facts, facts.text(fmt::format("nccl_conf/{}", name)));
}

Facts kernel_events(const std::string& log) {
  std::map<std::string, std::map<std::string, int>> seen;  // event, device
  std::string_view rest = log;
  while (!rest.empty()) {
    const std::string_view line = machine::take_line(rest);
    if (const Fault xid = fault_in(line, "NVRM: Xid (PCI:"); !xid.device.empty()) {
      ++seen["xid/" + xid.number][xid.device];
    } else if (const Fault sxid = fault_in(line, ": SXid (PCI:"); !sxid.device.empty()) {
      const bool fatal = line.find(", Fatal,") != std::string_view::npos;
      ++seen[(fatal ? "sxid_fatal/" : "sxid/") + sxid.number][sxid.device];
    } else if (line.find("mlx5_core ") != std::string_view::npos && line.find("Link down") != std::string_view::npos) {
      ++seen["link_down"][device_before(line, "mlx5_core ")];
    }
  }
  Facts facts;
  for (const auto& [event, devices] : seen) {
    std::vector<std::string> parts;
    for (const auto& [device, times] : devices) parts.push_back(fmt::format("{} ({})", device, plural(times, "time")));
    facts.set("log/" + event, join_first(parts, 4));
  }
  return facts;
}

void gather_kernel_log(const Tree& tree, Facts& facts) {
  const Reading log = tree.is_own_machine() ? kernel_log_of_this_machine() : tree.head("dev/kmsg", 1 << 20);
  if (log.access == Access::unreadable) return facts.set("log", log);
  if (log.access == Access::absent) return facts.set_unreadable("log", "there is no /dev/kmsg");
  facts.set("log", "read");
  facts.merge(kernel_events(log.text));
}

void gather_gpus(const machine::GpuReport& report, Facts& facts) {
  if (!report.unavailable.empty()) return facts.set_unreadable("nvml", report.unavailable);
  facts.set("nvml", "read");
  if (!report.driver.empty()) facts.set("driver/version", report.driver);
  for (const machine::GpuHealth& gpu : report.gpus) {
    const std::string key = "nvml/" + gpu.pci_bus_id + "/";
    const auto add = [&](const char* name, const auto& value) {
      if (value) facts.set(key + name, fmt::format("{}", *value));
    };
    facts.set(key + "name", gpu.name);
    add("persistence", gpu.persistence);
    add("mig", gpu.mig);
    add("compute_mode", gpu.compute_mode);
    add("ecc_uncorrected", gpu.ecc_uncorrected);
    add("row_remap_pending", gpu.row_remap_pending);
    add("row_remap_failed", gpu.row_remap_failed);
    add("power_limit_w", gpu.power_limit_w);
    add("default_power_limit_w", gpu.default_power_limit_w);
    add("temperature_c", gpu.temperature_c);
    add("bar1_bytes", gpu.bar1_bytes);
    add("pcie_width", gpu.pcie_width);
    add("pcie_max_width", gpu.pcie_max_width);
    if (gpu.throttle_reasons) add_slowdown(*gpu.throttle_reasons, key, facts);
    add("processes", gpu.processes);
    add("fabric_state", gpu.fabric_state);
    add("fabric_status", gpu.fabric_status);
    if (gpu.fabric_health) facts.set(key + "fabric_trouble", fabric_trouble(*gpu.fabric_health));
    if (!gpu.fabric_cluster.empty()) facts.set(key + "fabric_cluster", gpu.fabric_cluster);
    add("fabric_clique", gpu.fabric_clique);
    add("recovery_action", gpu.recovery_action);
    add("nvlink_recoveries", gpu.nvlink_recoveries);
    add("nvlink_crc_errors", gpu.nvlink_crc_errors);
    if (gpu.nvlinks.empty()) continue;
    facts.set(key + "nvlinks", fmt::format("{}", gpu.nvlinks.size()));
    facts.set(key + "nvlinks_active", fmt::format("{}", std::ranges::count(gpu.nvlinks, true)));
  }
}

std::vector<std::string> library_folders(const Tree& tree, std::string_view search_path) {
  std::vector<std::string> folders;
  for (const std::string_view folder : split(search_path, ':')) {
    if (folder.starts_with('/')) folders.emplace_back(folder);
  }
  add_folders_of(tree, "etc/ld.so.conf", folders);
  for (const std::string& name : tree.names("etc/ld.so.conf.d").names) {
    if (name.ends_with(".conf")) add_folders_of(tree, "etc/ld.so.conf.d/" + name, folders);
  }
  for (const char* folder : {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu",
                             "/usr/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"}) {
    folders.emplace_back(folder);
  }
  folders.resize(std::min(folders.size(), most_folders));
  return folders;
}

void gather_libraries(const Tree& tree, Facts& facts) {
  const char* const path = tree.is_own_machine() ? std::getenv("LD_LIBRARY_PATH") : nullptr;
  std::map<std::string, std::vector<std::string>> found;  // by the name that is asked for: where links lead
  for (const std::string& folder : library_folders(tree, path == nullptr ? "" : path)) {
    const std::string below = folder.substr(1);
    const machine::Listing names = tree.names(below);
    if (names.access == Access::unreadable) facts.set_unreadable("library", fmt::format("{}: {}", folder, names.why));
    for (const std::string& name : names.names) {
      const bool is_plugin = name.starts_with("libnccl-net") && name.ends_with(".so");
      if (!is_plugin && name != "libnccl.so.2") continue;
      const machine::Reading place = tree.resolved(fmt::format("{}/{}", below, name));
      if (!place.ok()) continue;  // a link that leads nowhere
      std::vector<std::string>& places = found[name];
      const std::string whole = "/" + place.text;
      if (std::ranges::find(places, whole) == places.end()) places.push_back(whole);
    }
  }
  for (const auto& [name, places] : found) facts.set("library/" + name, join(places, ", "));
}

}  // namespace harness::doctor
