#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/text.h"
#include "doctor/check.h"
#include "doctor/facts.h"
#include "job/job.h"
#include "support/files.h"
#include "support/played_job.h"

namespace harness::test {

// Builds nodes as they appear in /sys, /proc and /etc.

/// Returns a bridge's configuration space: all for root, 64 bytes for others. `acs`: its control register.
inline std::string configuration_space(unsigned acs, bool as_root = true) {
  std::string bytes(as_root ? 4096 : 64, '\0');
  if (!as_root) return bytes;
  const auto put = [&](std::size_t at, unsigned word) {
    bytes[at] = static_cast<char>(word & 0xff);
    bytes[at + 1] = static_cast<char>(word >> 8);
  };
  put(0x100, 0x0001);  // advanced error reporting, then a link to 0x160
  put(0x102, 0x1601);
  put(0x160, 0x000d);  // ACS
  put(0x162, 0x0001);
  put(0x166, acs);
  return bytes;
}

class NodeTree {
 public:
  explicit NodeTree(const std::string& host) : host_(host) {
    write("proc/sys/kernel/hostname", host);
    write("proc/sys/kernel/osrelease", "6.8.0-45-generic");
    write("proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Some CPU\nflags\t\t: fpu sse2\n");
    write("proc/meminfo", "MemTotal: 2113000000 kB\nMemAvailable: 2000000000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n");
    write("proc/loadavg", "0.10 0.10 0.10 1/999 1234");
    write("proc/self/cgroup", "0::/user.slice\n");
    write("proc/1/cgroup", "0::/init.scope\n");
    write("proc/self/status",
          "Name:\tharness\nCapEff:\t0000000000000000\nCpus_allowed_list:\t0-7\nMems_allowed_list:\t0-1\n");
    write("proc/sys/kernel/numa_balancing", "0");
    write("dev/kmsg", "6,1,1,-;Linux version 6.8.0\n");
    const std::string cpus = "sys/devices/system/cpu/";
    for (int cpu = 0; cpu < 8; ++cpu) {
      write(fmt::format("{}cpu{}/cpufreq/scaling_governor", cpus, cpu), "performance");
    }
    write(cpus + "online", "0-7");
    write("sys/devices/system/node/online", "0-1");
    write("sys/class/net/eth0/operstate", "up");
    write("sys/class/net/lo/operstate", "unknown");
    for (const char* folder : {"sys/bus/pci/devices", "sys/fs/cgroup"})
      std::filesystem::create_directories(root_ / folder);
  }

  std::string path() const { return root_.path(); }
  void write(const std::string& name, const std::string& text) { root_.write(name, text + "\n"); }
  void write_bytes(const std::string& name, const std::string& text) { root_.write(name, text); }
  void remove(const std::string& name) { std::filesystem::remove_all(root_ / name); }
  /// Makes a name unreadable as text, even for root, who may read all files.
  void make_unreadable(const std::string& name) {
    remove(name);
    std::filesystem::create_directories(root_ / name);
  }
  void link(const std::string& name, const std::string& target) {
    const std::filesystem::path place = root_ / name;
    std::filesystem::create_directories(place.parent_path());
    std::filesystem::remove(place);
    std::filesystem::create_symlink(target, place);
  }

  /// A PCI device or bridge of 16 lanes; `path` below sys/devices: "pci0000:10/0000:10:01.0".
  void add_pci(const std::string& path, const std::string& vendor, const std::string& kind) {
    const std::string folder = "sys/devices/" + path + "/", address = path.substr(path.rfind('/') + 1);
    write(folder + "vendor", vendor);
    write(folder + "class", kind);
    write(folder + "device", "0x2330");
    for (const char* name : {"current_link_width", "max_link_width"}) write(folder + name, "16");
    for (const char* name : {"current_link_speed", "max_link_speed"}) write(folder + name, "32.0 GT/s PCIe");
    write(folder + "numa_node", "0");
    write(folder + "local_cpulist", "0-3");
    write(folder + "aer_dev_fatal", "Undefined 0\nTOTAL_ERR_FATAL 0");
    write(folder + "aer_dev_correctable", "RxErr 0\nTOTAL_ERR_COR 0");
    link("sys/bus/pci/devices/" + address, "../../../devices/" + path);
  }
  void add_bridge(const std::string& path, unsigned acs) {
    add_pci(path, "0x1000", "0x060400");
    write_bytes("sys/devices/" + path + "/config", configuration_space(acs));
  }
  void add_gpu(const std::string& path, const std::string& model) {
    add_pci(path, "0x10de", "0x030200");
    const std::string folder = "sys/devices/" + path + "/", address = path.substr(path.rfind('/') + 1);
    write(folder + "iommu_group/type", "identity");
    std::filesystem::create_directories(root_ / "sys/bus/pci/drivers/nvidia");
    link("sys/devices/" + path + "/driver", "/sys/bus/pci/drivers/nvidia");
    const int minor = gpus_++;
    write("proc/driver/nvidia/gpus/" + address + "/information",
          fmt::format("Model: \t\t {}\nDevice Minor: \t {}", model, minor));
    write(fmt::format("dev/nvidia{}", minor), "");
  }
  void add_driver(bool open_modules = true) {
    write("proc/driver/nvidia/version",
          fmt::format("NVRM version: NVIDIA UNIX {}  570.86.15  Release Build",
                      open_modules ? "Open Kernel Module for x86_64" : "x86_64 Kernel Module"));
  }

  /// Adds an adapter with one port. `layer`: InfiniBand or Ethernet.
  void add_hca(const std::string& path, int number, const std::string& layer, const std::string& rate) {
    add_pci(path, "0x15b3", "0x020700");
    const std::string name = fmt::format("mlx5_{}", number), folder = "sys/devices/" + path + "/";
    write(folder + "iommu_group/type", "identity");
    const std::string own = folder + "infiniband/" + name + "/";
    link("sys/class/infiniband/" + name, fmt::format("../../devices/{}/infiniband/{}", path, name));
    link(own + "device", "../..");
    write(own + "fw_ver", "28.39.1002");
    write(own + "board_id", "MT_0000000838");
    const std::string port = own + "ports/1/";
    write(port + "state", "4: ACTIVE");
    write(port + "phys_state", "5: LinkUp");
    write(port + "rate", rate);
    write(port + "link_layer", layer);
    const bool infiniband = layer == "InfiniBand";
    write(port + "lid", infiniband ? fmt::format("0x{:x}", number + 16) : "0x0");
    write(port + "sm_lid", infiniband ? "0x1" : "0x0");
    write(port + "pkeys/0", "0xffff");
    write(port + "counters/link_downed", "0");
    write(port + "counters/symbol_error", "0");
    write(fmt::format("sys/class/infiniband_verbs/uverbs{}/ibdev", number), name);
    write(fmt::format("dev/infiniband/uverbs{}", number), "");
    if (infiniband) return;
    const std::string interface = fmt::format("ens{}np0", number);
    write(folder + "net/" + interface + "/mtu", "9000");
    link("sys/class/net/" + interface, fmt::format("../../devices/{}/net/{}", path, interface));
    write(folder + "net/" + interface + "/operstate", "up");
    for (const char* place : {"1", "3"}) write(port + "gid_attrs/types/" + place, "RoCE v2");
    write(port + "gids/1", "fe80:0000:0000:0000:0000:0000:0000:0001");
    write(port + "gids/3", "0000:0000:0000:0000:0000:ffff:0a00:0001");
    make_unreadable(port + "gids/7");  // an empty entry: the kernel returns EINVAL
  }

  doctor::Facts facts() const { return doctor::gather_node(path(), {}, 20); }
  /// Returns a node whose ranks were started correctly.
  doctor::Node node(int ranks) const {
    doctor::Node node{host_, {}, facts()};
    for (int rank = 0; rank < ranks; ++rank) node.ranks.push_back({rank, healthy_rank()});
    return node;
  }
  doctor::Node node(int ranks, const machine::GpuReport& gpus) const {
    doctor::Node found = node(ranks);
    doctor::gather_gpus(gpus, found.facts);
    return found;
  }
  static doctor::Facts healthy_rank() {
    doctor::Facts facts;
    facts.set("limit/memlock", "unlimited");
    facts.set("limit/nofile", "1048576");
    facts.set("shm/bytes", "1000000000000");
    facts.set("bound/cpus", "0-7");
    facts.set("missing_files", "none");
    return facts;
  }

 private:
  // A node has a thousand small files: in memory they take a tenth of the time, if there is room.
  static std::string quick_folder() {
    std::error_code none;
    const std::filesystem::space_info shared = std::filesystem::space("/dev/shm", none);
    constexpr std::uintmax_t enough = 512u << 20;
    return !none && shared.available > enough ? "/dev/shm" : "";
  }

  std::string host_;
  int gpus_ = 0;
  TemporaryFolder root_{quick_folder()};
};

/// The PCI paths of a node with four root ports: each has a switch with two GPUs and two adapters.
inline std::string switch_port(int root, int port) {
  return fmt::format("pci0000:{0}0/0000:{0}0:01.0/0000:{0}1:00.0/0000:{0}2:{1:02x}.0", root, port);
}
inline std::string gpu_place(int gpu) {
  const int root = 1 + gpu / 2, port = 2 * (gpu % 2);
  return fmt::format("{}/0000:{}{}:00.0", switch_port(root, port), root, 3 + port);
}
inline std::string hca_place(int hca) {
  const int root = 1 + hca / 2, port = 2 * (hca % 2) + 1;
  return fmt::format("{}/0000:{}{}:00.0", switch_port(root, port), root, 3 + port);
}
inline std::string gpu_address(int gpu) {
  const std::string place = gpu_place(gpu);
  return place.substr(place.rfind('/') + 1);
}

/// A node like a DGX H100: eight GPUs, eight adapters, four switches.
class Dgx : public NodeTree {
 public:
  explicit Dgx(const std::string& host = "dgx01", const std::string& layer = "InfiniBand") : NodeTree(host) {
    for (int root = 1; root <= 4; ++root) {
      add_bridge(fmt::format("pci0000:{0}0/0000:{0}0:01.0", root), 0x1d);  // a root port: its bits do not matter
      add_bridge(fmt::format("pci0000:{0}0/0000:{0}0:01.0/0000:{0}1:00.0", root), 0);
      for (int port = 0; port < 4; ++port) add_bridge(switch_port(root, port), 0);
    }
    for (int i = 0; i < 8; ++i) {
      add_gpu(gpu_place(i), "NVIDIA H100 80GB HBM3");
      add_hca(hca_place(i), i, layer, "400 Gb/sec (4X NDR)");
    }
    add_driver();
    write("usr/lib/x86_64-linux-gnu/libnccl.so.2.27.3", "");
    link("usr/lib/x86_64-linux-gnu/libnccl.so.2", "libnccl.so.2.27.3");
    write("sys/module/nvidia_peermem/version", "570.86.15");
  }
};

/// Returns NVML's report of healthy GPUs.
inline machine::GpuReport healthy_gpus(int count = 8) {
  machine::GpuReport report{"", "570.86.15", {}};
  for (int i = 0; i < count; ++i) {
    machine::GpuHealth gpu;
    gpu.pci_bus_id = gpu_address(i);
    gpu.name = "NVIDIA H100 80GB HBM3";
    gpu.persistence = true;
    gpu.mig = false;
    gpu.compute_mode = 0;
    gpu.ecc_uncorrected = 0;
    gpu.row_remap_pending = gpu.row_remap_failed = false;
    gpu.power_limit_w = gpu.default_power_limit_w = 700;
    gpu.memory_bytes = 80.0 * (1u << 30);
    gpu.bar1_bytes = 128.0 * (1u << 30);
    gpu.pcie_width = gpu.pcie_max_width = 16;
    gpu.throttle_reasons = 0x1;  // idle
    gpu.processes = 0;
    gpu.nvlinks.assign(18, true);
    gpu.fabric_state = 3;
    gpu.fabric_status = 0;
    gpu.fabric_health = 0xa;  // "no" for each problem
    gpu.recovery_action = 0;
    gpu.nvlink_recoveries = gpu.nvlink_crc_errors = 0;
    report.gpus.push_back(gpu);
  }
  return report;
}

/// Returns lines such as "fail pcie.width: …" for all findings but passed and skipped ones, in table order.
inline std::vector<std::string> worth_reading(const doctor::Diagnosis& diagnosis) {
  std::vector<std::string> lines;
  for (const doctor::Line& line : diagnosis.lines) {
    const doctor::Verdict verdict = line.finding.verdict;
    if (verdict == doctor::Verdict::pass || verdict == doctor::Verdict::skip) continue;
    lines.push_back(fmt::format("{} {}: {}", name_of(verdict), line.check, line.finding.evidence));
  }
  return lines;
}

/// Returns a healthy node with eight ranks.
inline doctor::Node healthy_node(const std::string& host = "dgx01") {
  static const doctor::Node any = Dgx().node(8, healthy_gpus());
  doctor::Node node = any;
  node.host = host;
  return node;
}

/// A fake job whose ranks answer like those of an MPI job, one after the other.
class AnsweringJob : public PlayedJob {
 public:
  AnsweringJob(int nodes, int ranks_per_node) : PlayedJob(std::vector<job::RankPlace>()) {
    for (int rank = 0; rank < nodes * ranks_per_node; ++rank) {
      job::RankPlace place;
      place.rank = rank;
      place.local_rank = rank % ranks_per_node;
      place.local_ranks = ranks_per_node;
      place.node = rank / ranks_per_node;
      place.host = fmt::format("host{}", place.node);
      seats().push_back(place);
    }
  }
  std::vector<std::string> ask(const std::string& question) override {
    std::vector<std::string> answers;
    for (const job::RankPlace& place : places()) {
      answers.push_back(place.rank == silent ? "" : doctor::answer(place.rank, question));
    }
    return answers;
  }

  int silent = -1;  // this rank gives no answer
};

}  // namespace harness::test
