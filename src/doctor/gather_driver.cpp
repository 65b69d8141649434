#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <regex>
#include <set>
#include <string_view>

#include "base/file.h"
#include "base/text.h"
#include "doctor/facts.h"
#include "machine/conditions.h"
#include "machine/tree.h"

namespace harness::doctor {
namespace {

using machine::Access;
using machine::Reading;
using machine::Tree;

// NVML's mask has two bits per question (nvmlGpuFabricInfo_v3_t in nvml.h); 1: yes.
std::string fabric_trouble(std::uint64_t health) {
  std::vector<std::string> troubles;
  unsigned shift = 0;
  for (const char* words : {"less bandwidth", "routes are being repaired", "routes are broken", "accesses time out"}) {
    if (((health >> shift) & 3u) == 1) troubles.emplace_back(words);
    shift += 2;
  }
  return troubles.empty() ? "none" : join(troubles, ", ");
}

// Takes PCIe lanes from the driver if /sys hides them, as in guests.
void add_lanes(const machine::GpuHealth& gpu, Facts& facts) {
  const std::string key = "gpu/" + gpu.pci_bus_id;
  if (!facts.any(key) || facts.has(key + "/width") || !gpu.pcie_width || !gpu.pcie_max_width) return;
  facts.set(key + "/width", fmt::format("{}", *gpu.pcie_width));
  facts.set(key + "/width_of_link", fmt::format("{}", *gpu.pcie_max_width));
}

// NVIDIA's version line: "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build …".
std::string version_in(const std::string& line) {
  static const std::regex version(R"( ([0-9]+(\.[0-9]+)+))");
  std::smatch found;
  return std::regex_search(line, found, version) ? found[1].str() : "";
}

// Kernels support dma-buf for RDMA since 5.12.
bool kernel_has_dmabuf(const std::string& release) {
  int major = 0, minor = 0;
  Cursor at{release};
  if (!at.integer(major) || !at.literal(".") || !at.integer(minor)) return false;
  return major > 5 || (major == 5 && minor >= 12);
}

// How adapters access GPU memory. Checks for the same modules as NCCL (src/transport/net_ib/gdr.cc).
Reading gpu_direct(const Tree& tree, const Reading& version) {
  for (const char* path : {"sys/module/nvidia_peermem/version", "sys/kernel/mm/memory_peers/nv_mem/version",
                           "sys/kernel/mm/memory_peers/nv_mem_nc/version"}) {
    if (tree.exists(path)) return {Access::read, path, {}};
  }
  if (!version.ok()) return {Access::unreadable, {}, "/proc/driver/nvidia/version: " + why_silent(version)};
  const Reading kernel = tree.line("proc/sys/kernel/osrelease");
  if (!kernel.ok()) return {Access::unreadable, {}, "the version of the kernel: " + why_silent(kernel)};
  const bool is_open = version.text.find("Open Kernel Module") != std::string::npos;
  return {Access::read, is_open && kernel_has_dmabuf(kernel.text) ? "dma-buf" : "none", {}};
}

// Xids after which, by NVIDIA's catalogue, a GPU or its links must be reset, or worse.
bool is_severe(const std::string& xid) {
  static const std::set<std::string> severe{"48",  "62",  "64",  "74",  "79",  "95",  "109", "119",
                                            "120", "136", "140", "143", "144", "145", "146", "147",
                                            "148", "149", "150", "151", "154", "158"};
  return severe.contains(xid);
}

// Reads the log's records that exist now. Each read returns one.
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

constexpr std::size_t most_folders = 256;

// Adds the folders of an ldconfig file, one a line; "include …" and comments are skipped.
void add_folders_of(const Tree& tree, const std::string& path, std::vector<std::string>& folders) {
  const machine::Reading file = tree.bytes(path);
  std::string_view rest = file.text;
  while (!rest.empty()) {
    const std::string_view line = trim(machine::take_line(rest));
    if (line.starts_with('/')) folders.emplace_back(line);
  }
}

}  // namespace

// Reads it as NCCL does (src/misc/param.cc): blanks belong to names and values, and the first line of a name counts.
void gather_nccl_file(const Tree& tree, Facts& facts) {
  const Reading file = tree.bytes("etc/nccl.conf");
  if (file.unreadable()) facts.set("nccl_conf", file);
  std::string_view rest = file.text;
  while (!rest.empty()) {
    const std::string line(machine::take_line(rest));
    const std::size_t equals = line.find('=');
    if (line.starts_with('#') || equals == std::string::npos) continue;
    const std::string name = "nccl_conf/" + line.substr(0, equals);
    if (!facts.has(name)) facts.set(name, line.substr(equals + 1));
  }
}

void gather_driver(const Tree& tree, Facts& facts) {
  Reading version = tree.bytes("proc/driver/nvidia/version");
  const machine::Listing gpus = tree.names("proc/driver/nvidia/gpus");
  if (version.ok() || !gpus.names.empty()) facts.set("driver/gpu_direct", gpu_direct(tree, version));
  constexpr std::size_t longest = 256;  // limit for that line
  if (version.ok()) version.text = version_in(version.text.substr(0, std::min(version.text.find('\n'), longest)));
  facts.set("driver/version", version);
  if (gpus.unreadable()) facts.set_unreadable("driver/gpus", gpus.why);
  for (const std::string& gpu : gpus.names) {
    const Reading information = tree.bytes("proc/driver/nvidia/gpus/" + gpu + "/information");
    facts.set("driver/gpu/" + lower(gpu), machine::value_of(information.text, "Model"));
  }
  gather_nccl_file(tree, facts);
}

// Messages such as "NVRM: Xid (PCI:0000:1b:00): 79, pid=1", "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal,
// …", "mlx5_core 0000:9a:00.0 ens2np0: Link down" and "bnxt_en 0000:9a:00.0 ens2np0: NIC Link is Down".
Facts kernel_events(const std::string& log) {
  static const std::regex xid(R"(NVRM: Xid \(PCI:([^)]{1,32})\): ([0-9]{1,5}))"),
      sxid(R"(: SXid \(PCI:([^)]{1,32})\): ([0-9]{1,5}))"), adapter("(?:mlx5_core|bnxt_en) ([0-9a-f:.]{1,32}[0-9a-f])");
  std::map<std::string, std::map<std::string, int>> seen;  // by the name of the fact, then by event and place
  for (const char* name : {"severe_xid", "xid", "fatal_sxid", "sxid", "link_down"}) seen[name];
  std::string_view rest = log;
  while (!rest.empty()) {
    const std::string_view line = machine::take_line(rest);
    const auto has = [&](std::string_view words) { return line.find(words) != std::string_view::npos; };
    std::cmatch found;
    const auto matches = [&](const std::regex& form) {
      return std::regex_search(line.begin(), line.end(), found, form);
    };
    const auto place = [&] { return fmt::format("{} at {}", found[2].str(), found[1].str()); };
    if (has("NVRM: Xid") && matches(xid)) {
      ++seen[is_severe(found[2].str()) ? "severe_xid" : "xid"][place()];
    } else if (has(": SXid") && matches(sxid)) {
      ++seen[has(", Fatal,") ? "fatal_sxid" : "sxid"][place()];
    } else if ((has("Link down") || has("Link is Down")) && matches(adapter)) {
      ++seen["link_down"][found[1].str()];
    }
  }
  Facts facts;
  for (const auto& [event, places] : seen) {
    std::vector<std::string> parts;
    for (const auto& [place, times] : places) parts.push_back(fmt::format("{} ({})", place, plural(times, "time")));
    facts.set("log/" + event, parts.empty() ? "none" : join_first(parts, 4));
  }
  return facts;
}

void gather_kernel_log(const Tree& tree, Facts& facts) {
  const Reading log = tree.is_own_machine() ? kernel_log_of_this_machine() : tree.bytes("dev/kmsg");
  facts.merge(kernel_events(log.text));
  if (log.ok()) return;
  const std::string why = log.access == Access::absent ? "there is no /dev/kmsg" : log.why;
  for (const std::string& name : facts.under("log")) facts.set_unreadable("log/" + name, why);
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
    if (const auto& reasons = gpu.throttle_reasons) {
      constexpr std::uint64_t harmful = machine::throttled_by_hardware | machine::throttled_by_heat;
      facts.set(key + "slowed_by", (*reasons & harmful) != 0 ? machine::harmful_throttling(*reasons) : "nothing");
      facts.set(key + "clocks_set", (*reasons & machine::throttled_by_setting) != 0 ? "yes" : "no");
    }
    add("processes", gpu.processes);
    add("fabric_state", gpu.fabric_state);
    add("fabric_status", gpu.fabric_status);
    if (gpu.fabric_health) facts.set(key + "fabric_trouble", fabric_trouble(*gpu.fabric_health));
    add("recovery_action", gpu.recovery_action);
    add("nvlink_recoveries", gpu.nvlink_recoveries);
    add("nvlink_crc_errors", gpu.nvlink_crc_errors);
    add_lanes(gpu, facts);
    if (gpu.bar1_bytes) facts.set(key + "bar_gib", fmt::format("{:.2f}", *gpu.bar1_bytes / (1 << 30)));
    const auto links = std::ssize(gpu.nvlinks), active = std::ranges::count(gpu.nvlinks, true);
    if (links == 0) continue;
    facts.set(key + "nvlinks_active", fmt::format("{}", active));
    // The bridges of an H100 card connect 12 of the chip's 18 links. Cards with fewer bridges have unconnected links;
    // boards with switches use all.
    const bool is_h100_card = gpu.name.ends_with("H100 PCIe") || gpu.name.ends_with("H100 NVL");
    const auto expected = is_h100_card ? std::min<std::ptrdiff_t>(links, 12) : links;
    if (gpu.fabric_state || 2 * active > expected) facts.set(key + "nvlinks", fmt::format("{}", expected));
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
  std::map<std::string, std::vector<std::string>> found;  // by name: the files that links resolve to
  for (const std::string& folder : library_folders(tree, path == nullptr ? "" : path)) {
    const std::string below = folder.substr(1);
    const machine::Listing names = tree.names(below);
    if (names.unreadable()) facts.set_unreadable("library", fmt::format("{}: {}", folder, names.why));
    for (const std::string& name : names.names) {
      const bool is_plugin = name.starts_with("libnccl-net") && name.ends_with(".so");
      if (!is_plugin && name != "libnccl.so.2") continue;
      const machine::Reading place = tree.resolved(fmt::format("{}/{}", below, name));
      if (!place.ok()) continue;  // a dangling link
      add_once(found[name], "/" + place.text);
    }
  }
  for (const auto& [name, places] : found) facts.set("library/" + name, join(places, ", "));
}

}  // namespace harness::doctor
