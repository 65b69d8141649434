#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "doctor/check.h"
#include "node_fixture.h"

namespace harness::doctor::check_rows {

// For each check: a change that makes a healthy node fail it, and one that hides the facts it reads.

using NodeChange = std::function<void(Node&)>;

inline NodeChange set(const std::string& name, const std::string& value) {
  return [=](Node& node) { node.facts.set(name, value); };
}
inline NodeChange hide(const std::string& name) {
  return [=](Node& node) { node.facts.set_unreadable(name, "permission denied"); };
}
inline Facts without(const Facts& facts, const std::string& name) {
  Facts others;
  for (const auto& [other, reading] : facts) {
    if (other != name) others.set(other, reading);
  }
  return others;
}
inline NodeChange unset(const std::string& name) {
  return [=](Node& node) { node.facts = without(node.facts, name); };
}
inline NodeChange set_in_ranks(const std::string& name, const std::string& value) {
  return [=](Node& node) {
    for (Rank& rank : node.ranks) rank.facts.set(name, value);
  };
}
inline NodeChange hide_in_ranks(const std::string& name) {
  return [=](Node& node) {
    for (Rank& rank : node.ranks) {
      rank.facts = without(rank.facts, name);
      rank.facts.set_unreadable(name, "permission denied");
    }
  };
}
inline NodeChange both(const NodeChange& first, const NodeChange& second) {
  return [=](Node& node) {
    first(node);
    second(node);
  };
}
inline void nothing(Node&) {}

inline const std::string first_gpu = "gpu/0000:13:00.0", first_nvml = "nvml/0000:13:00.0",
                         first_port = "port/mlx5_0/1/";

// Returns the kind of a fact, common to all devices: "port/*/1/rate".
inline std::string kind_of(const std::string& fact) {
  std::string kind;
  for (const std::string_view part : split(fact, '/')) {
    const bool is_device = part.starts_with("mlx5_") || part.starts_with("0000:");
    kind += (kind.empty() ? "" : "/") + (is_device ? std::string("*") : std::string(part));
  }
  return kind;
}

struct Row {
  std::string check;
  NodeChange bad;
  Verdict verdict;
  NodeChange hidden;
  NodeChange prepare = nothing;  // applied before both changes and the healthy check
  Verdict when_hidden = Verdict::unknown;
  std::optional<Verdict> when_all_are = std::nullopt;  // when all devices are changed alike; else the same verdict
};

inline void roce(Node& node) {
  for (int i = 0; i < 8; ++i) {
    const std::string device = fmt::format("mlx5_{}", i);
    node.facts.set("port/" + device + "/1/link_layer", "Ethernet");
    node.facts.set("port/" + device + "/1/roce_addresses", "3, 5");
    node.facts.set("port/" + device + "/1/interface_mtu", "9000");
  }
}
inline void grace(Node& node) {
  node.facts.set("os/processor", "arm");
  for (const char* kind : {"gpu", "hca"}) {
    for (const std::string& name : node.facts.under(kind))
      node.facts.set(fmt::format("{}/{}/iommu", kind, name), "DMA");
  }
}
inline const NodeChange some_variable = set_in_ranks("env/NCCL_IB_TIMEOUT", "22");

inline const std::vector<Row>& rows() {
  using enum Verdict;
  static const std::vector<Row> all{
      {"gpu.count", [](Node& node) { node.facts.set("gpu/0000:ff:00.0/device", "0x2330"); }, fail, hide("driver/gpus")},
      {"gpu.driver", set(first_gpu + "/driver", "nouveau"), warn, hide(first_gpu + "/driver")},
      {"gpu.nvml", hide("nvml"), unknown, hide("nvml")},
      {"gpu.persistence", set(first_nvml + "/persistence", "false"), warn, hide("nvml"), nothing, skip},
      {"gpu.mode", set(first_nvml + "/mig", "true"), warn, hide("nvml"), nothing, skip},
      {"gpu.slowed", set(first_nvml + "/slowed_by", "hardware slowdown"), warn, hide("nvml"), nothing, skip},
      {"gpu.power", set(first_nvml + "/power_limit_w", "500"), warn, hide("nvml"), nothing, skip},
      {"gpu.memory_errors", set(first_nvml + "/row_remap_failed", "true"), fail, hide("nvml"), nothing, skip},
      {"gpu.processes", set(first_nvml + "/processes", "1"), fail, hide("nvml"), nothing, skip},
      {"gpu.recovery", set(first_nvml + "/recovery_action", "2"), fail, hide("nvml"), nothing, skip},
      {"gpu.xid", set("log/severe_xid", "79 at 0000:13:00 (1 time)"), warn, hide("log/severe_xid")},
      {"gpu.nvlink", set(first_nvml + "/nvlinks_active", "17"), fail, hide("nvml"), nothing, skip},
      {"gpu.nvlink_errors", set(first_nvml + "/nvlink_recoveries", "3"), info, hide("nvml"), nothing, skip},
      {"gpu.fabric", set(first_nvml + "/fabric_state", "2"), fail, hide("nvml"), nothing, skip},
      {"gdr.module", set("driver/gpu_direct", "none"), fail, hide("driver/gpu_direct")},
      {"ib.state", both(set(first_port + "state", "DOWN"), set_in_ranks("env/NCCL_IB_HCA", "mlx5")), fail,
       hide(first_port + "state")},
      {"ib.rate", set(first_port + "rate", "200 Gb/sec (4X HDR)"), fail, hide(first_port + "rate"), nothing, unknown,
       pass},
      {"ib.subnet", set(first_port + "sm_lid", "0x0"), fail, hide(first_port + "sm_lid")},
      {"ib.gid", set(first_port + "roce_addresses", "none"), fail, hide(first_port + "roce_addresses"), roce},
      {"ib.mtu", set(first_port + "interface_mtu", "1500"), warn, hide(first_port + "interface_mtu"), roce},
      {"ib.errors", set(first_port + "counter/link_downed", "3"), info, hide("hcas")},
      {"ib.verbs", set("hca/mlx5_0/verbs", "no"), fail, hide("hca/mlx5_0/verbs")},
      {"ib.pcie", set("hca/mlx5_0/link_gbps", "126"), fail, hide("hca/mlx5_0/link_gbps")},
      {"ib.flaps", set("log/link_down", "0000:14:00.0 (3 times)"), warn, hide("log/link_down")},
      {"pcie.width", set("hca/mlx5_0/width", "8"), fail, hide("hca/mlx5_0/width")},
      {"pcie.speed", set("hca/mlx5_0/speed", "16.0 GT/s PCIe"), fail, hide("hca/mlx5_0/speed")},
      {"pcie.errors", set(first_gpu + "/aer_fatal", "1"), fail, nothing, nothing, pass},
      {"pcie.acs", set("bridge/0000:12:00.0/acs", "on"), warn, hide("bridge/0000:12:00.0/acs")},
      {"pcie.iommu", set(first_gpu + "/iommu", "DMA-FQ"), warn, hide(first_gpu + "/iommu")},
      {"pcie.iommu_grace", set(first_gpu + "/iommu", "identity"), warn, hide(first_gpu + "/iommu"), grace},
      {"gpu.bar1", set(first_nvml + "/bar_gib", "0.25"), fail, hide("nvml"), nothing, skip},
      {"topo.numa", set(first_gpu + "/numa", "-1"), unknown, hide(first_gpu + "/numa")},
      {"topo.nearest",
       [](Node& node) {
         for (const char* device : {"hca/mlx5_0", "hca/mlx5_1"})
           node.facts.set(std::string(device) + "/path", "sys/devices/pci0000:90/0000:90:01.0/0000:91:00.0");
       },
       warn, hide(first_gpu + "/path")},
      {"rank.gpus", [](Node& node) { node.ranks.resize(9); }, fail, nothing, nothing, pass},
      {"rank.memlock", set_in_ranks("limit/memlock", "65536"), fail, hide_in_ranks("limit/memlock")},
      {"rank.nofile", set_in_ranks("limit/nofile", "1024"), warn, hide_in_ranks("limit/nofile")},
      {"rank.shm", set_in_ranks("shm/bytes", "67108864"), warn, hide_in_ranks("shm/bytes")},
      {"rank.near_gpu", set_in_ranks("bound/cpus", "6"), warn, hide_in_ranks("bound/cpus")},
      {"node.answers", set("silent", "rank 3"), fail, set("unfinished", "NVML"), nothing, warn},
      {"cpu.governor", set("cpu/governor", "powersave"), warn, hide("cpu/governor")},
      {"cpu.load", set("cpu/load", "17.0"), warn, hide("cpu/load")},
      {"cpu.quota", set("cpu/quota", "2.00"), warn, hide("cpu/quota")},
      {"mem.swap", set("memory/swapped_gib", "7.6"), warn, hide("memory/swapped_gib")},
      {"mem.numa_balancing", set("memory/numa_balancing", "1"), warn, hide("memory/numa_balancing")},
      {"nccl.plugin_file", set_in_ranks("env/NCCL_NET_PLUGIN", "ofi"), warn, hide("library")},
      {"env.names", set_in_ranks("env/NCCL_SHARP_ENABLE", "1"), warn, hide("nccl_conf"), some_variable},
      {"env.values", set_in_ranks("env/NCCL_BUFFSIZE", "4M"), warn, hide("nccl_conf"), some_variable},
      {"env.debugging", set_in_ranks("env/NCCL_P2P_DISABLE", "1"), warn, hide("nccl_conf"), some_variable},
      {"env.cuda", set_in_ranks("env/CUDA_LAUNCH_BLOCKING", "1"), warn, nothing, nothing, pass},
      {"env.without_effect", set_in_ranks("env/NCCL_IB_GID_INDEX", "3"), info, hide("hcas"), some_variable},
      {"env.devices", set_in_ranks("env/NCCL_IB_HCA", "mlx4"), fail, hide("nccl_conf"),
       set_in_ranks("env/NCCL_IB_HCA", "=mlx5_0,mlx5_1")},
      {"env.files", set_in_ranks("missing_files", "NCCL_TOPO_FILE=/opt/topo.xml"), warn,
       hide_in_ranks("missing_files")},
      {"env.file", set("nccl_conf/NCCL_ALGO", "Ring"), info, hide("nccl_conf")}};
  return all;
}

inline const Check& check_named(const std::string& id) {
  return *std::ranges::find(checks(), id, [](const Check& check) { return check.about.id; });
}
inline std::vector<Finding> found(const std::string& id, const Node& node) {
  return judge(check_named(id), node, Cluster({node}));
}

inline Verdict worst(const std::vector<Finding>& findings) {
  return std::ranges::min(findings, {}, &Finding::verdict).verdict;
}

}  // namespace harness::doctor::check_rows
