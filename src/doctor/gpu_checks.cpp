// GPUs: what the driver and the bus say of them without load, NVLink and its switches, GPUDirect RDMA.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "doctor/check.h"

namespace harness::doctor {
namespace {

// By NVIDIA's catalogue, those after which a GPU or its links must be reset, or worse.
bool is_severe(int xid) {
  static const std::set<int> severe{48,  62,  64,  74,  79,  95,  109, 119, 120, 136, 140,
                                    143, 144, 145, 146, 147, 148, 149, 150, 151, 154, 158};
  return severe.contains(xid);
}

bool is_one_of(const std::string& model, std::initializer_list<const char*> names) {
  return std::ranges::any_of(names, [&](const char* name) { return model.find(name) != std::string::npos; });
}

// H200 NVL and H800 PCIe are cards with bridges.
bool is_on_switched_board(const std::string& model) {
  return is_one_of(model, {"A100-SXM", "H100 80GB HBM3", "H200", "H800", "H20", "B200", "B300"}) &&
         !is_one_of(model, {" NVL", "PCIe"}) && !is_rack_scale(model);
}

// Kernels have dma-buf for RDMA since 5.12. Nothing where it is no version.
std::optional<bool> kernel_has_dmabuf(const std::string& release) {
  int major = 0, minor = 0;
  Cursor at{release};
  if (!at.integer(major) || !at.literal(".") || !at.integer(minor)) return std::nullopt;
  return major > 5 || (major == 5 && minor >= 12);
}

// Whether dma-buf can give adapters the GPUs' memory; `why_not`, or why it is not known.
enum class Known : std::uint8_t { yes, no, unknown };

Known dmabuf(const Facts& facts, std::string& why_not) {
  const machine::Reading& kind = facts["driver/open"];
  if (!kind.ok()) {
    const machine::Reading& version = facts["driver/version"];
    why_not = version.why.empty() ? "no /proc/driver/nvidia/version" : version.why;
    return Known::unknown;
  }
  const machine::Reading &kernel = facts["os/kernel"], &option = facts.peek("kernel/dmabuf");
  const auto is_new = kernel_has_dmabuf(kernel.text);
  if (!is_new) {
    why_not = "the version of the kernel: " + why_silent(kernel);
    return Known::unknown;
  }
  if (kind.text != "yes") {
    why_not = "NVIDIA's closed kernel modules have none";
  } else if (!*is_new) {
    why_not = fmt::format("kernel {} is older than 5.12", kernel.text);
  } else if (option.text == "no") {
    why_not = "the kernel was built without CONFIG_DMA_SHARED_BUFFER";
  }
  return why_not.empty() ? Known::yes : Known::no;
}

// True, and said, where there are no GPUs and adapters that GPUDirect RDMA could be for.
bool no_gpu_direct(const Node& node, Findings& out) {
  const std::vector<std::string> gpus = gpus_of(node.facts);
  if (gpus.empty() && !node.facts.any("driver/gpu")) {
    out.skip("no NVIDIA GPU");
  } else if (no_ports(node, out)) {
    return true;
  } else if (!gpus.empty() && is_geforce(gpu_model(node.facts, gpus.front()))) {
    out.skip("GeForce has no GPUDirect RDMA");
  }
  return !out.empty();
}

// Says unknown of GPUs that do not tell NVML what equal ones tell.
void say_silent_gpus(const Facts& facts, const std::string& fact, const std::string& what, Findings& out) {
  const std::vector<std::string> silent = silent_among_equals(facts, "nvml", fact);
  if (!silent.empty()) out.unknown(fmt::format("{} of GPU {}", what, join_first(silent, 3)), "its equals tell it");
}

}  // namespace

void look::gpu_count(const Node& node, const Cluster&, Findings& out) {
  const Facts& facts = node.facts;
  const std::set<std::string> by_driver = [&] {
    const auto names = facts.under("driver/gpu");
    return std::set<std::string>(names.begin(), names.end());
  }();
  const std::vector<std::string> on_bus = gpus_of(facts);
  if (const auto& pci = facts["pci"];
      on_bus.empty() && pci.access == machine::Access::unreadable && by_driver.empty()) {
    return facts.any("nvml") ? out.pass(plural(std::ssize(facts.under("nvml")), "GPU"))
                             : out.unknown("the list of GPUs", pci.why);
  }
  if (on_bus.empty() && by_driver.empty()) return out.skip("no NVIDIA GPU");
  if (const auto& list = facts["driver/gpus"]; list.access == machine::Access::unreadable) {
    return out.unknown("the driver's list of GPUs", list.why);
  }
  std::vector<std::string> missing;
  for (const std::string& gpu : on_bus) {
    const std::string driver = facts.text("gpu/" + gpu + "/driver");
    const bool for_others = driver == "vfio-pci";
    if (!for_others && !by_driver.contains(gpu)) missing.push_back(gpu);
  }
  if (missing.empty() || on_bus.empty()) {
    return out.pass(plural(static_cast<std::int64_t>(std::max(on_bus.size(), by_driver.size())), "GPU"));
  }
  const std::string evidence = fmt::format("the bus has {}, NVIDIA's driver {}: not {}",
                                           plural(std::ssize(on_bus), "GPU"), by_driver.size(), join_first(missing, 3));
  if (is_container(facts)) return out.info(evidence + "; a container may have been given fewer");
  out.fail(evidence, "look for Xid 79 in the kernel's log; reset or restart, then replace the GPU");
}

void look::gpu_driver(const Node& node, const Cluster&, Findings& out) {
  const std::vector<std::string> gpus = gpus_of(node.facts);
  if (gpus.empty()) return out.skip("no NVIDIA GPU in /sys");
  std::map<std::string, std::vector<std::string>> others;
  for (const std::string& gpu : gpus) {
    const machine::Reading& reading = node.facts["gpu/" + gpu + "/driver"];
    if (reading.access == machine::Access::unreadable) return out.unknown("the driver of GPU " + gpu, reading.why);
    if (reading.text != "nvidia" && reading.text != "vfio-pci") others[reading.text].push_back(gpu);
  }
  if (others.empty()) return out.pass("nvidia");
  for (const auto& [name, with] : others) {
    out.warn(fmt::format("{} by {}: {}", plural(std::ssize(with), "GPU") + " driven", name.empty() ? "nothing" : name,
                         join_first(with, 3)),
             "blacklist nouveau, and load NVIDIA's driver");
  }
}

void look::gpu_nvml(const Node& node, const Cluster&, Findings& out) {
  if (!has_gpus(node.facts)) return out.skip("no NVIDIA GPU");
  const machine::Reading& nvml = node.facts["nvml"];
  if (!nvml.ok()) {
    return out.unknown("the GPUs' state", nvml.why.empty() ? "NVML tells of the running machine only" : nvml.why,
                       "does `nvidia-smi` work on this node?");
  }
  if (!node.facts.any("nvml")) return out.unknown("the GPUs' state", "NVML lists no GPU");
  std::vector<std::string> lost = gpus_of(node.facts);
  std::erase_if(lost, [&](const std::string& gpu) {
    const auto may_use = [&](const Rank& rank) { return rank.facts.text("gpu/" + gpu) == "yes"; };
    return node.facts.any("nvml/" + gpu) || std::ranges::none_of(node.ranks, may_use);
  });
  if (!lost.empty()) {
    out.unknown("the state of GPU " + join_first(lost, 3), "NVML does not list it, though the job may use it",
                "look for Xid 79 in the kernel's log");
  }
  out.conclude(true, plural(std::ssize(node.facts.under("nvml")), "GPU"), "");
}

void look::gpu_temperature(const Node& node, const Cluster&, Findings& out) {
  if (no_nvml(node, out)) return;
  std::vector<double> all;
  for (const std::string& gpu : node.facts.under("nvml")) {
    if (const auto now = node.facts.number("nvml/" + gpu + "/temperature_c")) all.push_back(*now);
  }
  if (all.empty()) return out.skip("the GPUs do not tell");
  std::ranges::sort(all);
  const double median = all[all.size() / 2];
  constexpr double much = 10;
  for (const std::string& gpu : node.facts.under("nvml")) {
    const auto now = node.facts.number("nvml/" + gpu + "/temperature_c");
    if (!now || *now <= median + much) continue;
    out.warn(fmt::format("GPU {} has {:.0f} °C, the median here is {:.0f}", gpu, *now, median),
             "is something running on it? else look at its cooler");
  }
  say_silent_gpus(node.facts, "temperature_c", "the temperature", out);
  out.conclude(true, fmt::format("{:.0f} °C", median), "");
}

void look::gpu_xid(const Node& node, const Cluster&, Findings& out) {
  if (!has_gpus(node.facts)) return out.skip("no NVIDIA GPU");
  if (const auto& log = node.facts["log"]; !log.ok()) {
    return out.unknown("the kernel's log", log.why.empty() ? "there is none" : log.why, "run doctor once as root");
  }
  for (const std::string& number : node.facts.under("log/xid")) {
    const std::string evidence =
        fmt::format("Xid {} since the start: {}", number, node.facts.text("log/xid/" + number));
    if (is_severe(number_in<int>(number).value_or(0))) {  // in a file from elsewhere it may be no number
      out.warn(evidence, "reset the GPU, or restart the node; replace the GPU if it comes back");
    } else {
      out.info(evidence);
    }
  }
  if (out.empty()) out.pass("none since the start");
}

void look::gpu_nvlink(const Node& node, const Cluster&, Findings& out) {
  if (no_nvml(node, out)) return;
  bool told = false;
  for (const std::string& gpu : node.facts.under("nvml")) {
    const auto links = node.facts.number("nvml/" + gpu + "/nvlinks"),
               active = node.facts.number("nvml/" + gpu + "/nvlinks_active");
    told = told || (links && active);
    if (!links || !active || *active >= *links) continue;
    const std::string evidence = fmt::format("{:.0f} of {:.0f} NVLinks of GPU {} are active", *active, *links, gpu);
    const std::string remedy = "`nvidia-smi nvlink -s`; is the fabric manager running? reset the GPUs";
    // Cards with bridges have links that lead nowhere; boards with switches use all.
    const bool by_switch = node.facts.has("nvml/" + gpu + "/fabric_state") || node.facts.has("daemon/fabric_manager") ||
                           *active > 0.5 * *links;
    if (by_switch) {
      out.fail(evidence, remedy);
    } else {
      out.info(evidence, remedy);
    }
  }
  say_silent_gpus(node.facts, "nvlinks_active", "the NVLinks", out);
  out.conclude(told, "all active", "no NVLink");
}

// GPUs on a board with NVLink switches need the fabric manager on their node; trays of a rack have it elsewhere.
void look::gpu_fabric_manager(const Node& node, const Cluster&, Findings& out) {
  const Facts& facts = node.facts;
  const std::vector<std::string> gpus = gpus_of(facts);
  constexpr std::size_t of_a_board = 8;
  if (gpus.size() < of_a_board) return out.skip("no board with NVLink switches");
  const std::string model = gpu_model(facts, gpus.front());
  if (!is_on_switched_board(model)) return out.skip("no board with NVLink switches");
  if (facts.has("daemon/fabric_manager")) return out.pass("it runs");
  if (is_container(facts) || is_virtual(facts)) {
    return out.unknown("whether the fabric manager runs", "it may run outside, where its process is not seen");
  }
  if (const machine::Reading& daemons = facts["daemon"]; !daemons.ok() && !daemons.why.empty())
    return out.unknown("whether the fabric manager runs", daemons.why, "run doctor once as root");
  out.fail("no process nv-fabricmanager: the GPUs cannot use NVLink", "`systemctl start nvidia-fabricmanager`");
}

void look::gpu_nvlink_domain(const Node& node, const Cluster&, Findings& out) {
  if (no_nvml(node, out)) return;
  std::map<std::string, std::vector<std::string>> gpus;  // by domain
  for (const std::string& gpu : node.facts.under("nvml")) {
    if (const std::string domain = nvlink_domain_of(node.facts, gpu); !domain.empty()) gpus[domain].push_back(gpu);
  }
  if (gpus.empty()) return out.skip("no NVLink between nodes");
  say_silent_gpus(node.facts, "fabric_cluster", "the NVLink domain", out);
  say_silent_gpus(node.facts, "fabric_clique", "the clique in its NVLink domain", out);
  if (gpus.size() == 1) return out.conclude(true, gpus.begin()->first, "");
  std::vector<std::string> parts;
  for (const auto& [domain, members] : gpus) parts.push_back(fmt::format("{}: {}", domain, join_first(members, 4)));
  out.fail("the GPUs of the node belong to different NVLink domains: " + join(parts, "; "),
           "look at the partitions that the rack's fabric manager (NMX-C) has made, and at its log");
}

void look::gpu_sxid(const Node& node, const Cluster&, Findings& out) {
  if (!has_gpus(node.facts)) return out.skip("no NVIDIA GPU");
  if (const auto& log = node.facts["log"]; !log.ok()) return out.skip("the kernel's log: see gpu.xid");
  for (const std::string& number : node.facts.under("log/sxid_fatal")) {
    out.warn(fmt::format("fatal SXid {} since the start: {}", number, node.facts.text("log/sxid_fatal/" + number)),
             "restart the node; replace the board if it comes back");
  }
  for (const std::string& number : node.facts.under("log/sxid"))
    out.info(fmt::format("SXid {} since the start: {}", number, node.facts.text("log/sxid/" + number)));
  if (out.empty()) out.pass("none since the start");
}

void look::gdr_module(const Node& node, const Cluster&, Findings& out) {
  if (no_gpu_direct(node, out)) return;
  if (node.facts.has("driver/peermem")) return out.pass(node.facts.text("driver/peermem"));
  std::string why;
  const Known known = dmabuf(node.facts, why);
  if (known == Known::yes) return out.pass("dma-buf, by the open driver");
  if (known == Known::unknown) return out.unknown("whether adapters reach the GPUs' memory by dma-buf", why);
  out.fail("neither nvidia_peermem nor dma-buf: what GPUs send to other nodes goes through the host's memory",
           "`modprobe nvidia_peermem`, or the open kernel modules of the driver with a kernel from 5.12 on");
}

void look::gdr_gdrcopy(const Node& node, const Cluster&, Findings& out) {
  if (!has_gpus(node.facts)) return out.skip("no NVIDIA GPU");
  const machine::Reading& reading = node.facts["driver/gdrcopy"];
  const bool wanted = setting_of(node, "NCCL_GDRCOPY_ENABLE") == "1";
  if (reading.text == "yes") return out.pass("gdrdrv");
  const std::string remedy = "load gdrdrv and make /dev/gdrdrv (with --device in a container), or unset the variable";
  if (reading.access == machine::Access::unreadable) return out.unknown("the module gdrdrv", reading.why);
  if (wanted) return out.warn("NCCL_GDRCOPY_ENABLE=1, but GDRCopy's module or device is not there", remedy);
  out.skip("there is no GDRCopy, and NCCL does not need it");
}

}  // namespace harness::doctor
