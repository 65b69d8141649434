// The links and bridges between GPUs, adapters and the processor.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "doctor/check.h"

namespace harness::doctor {
namespace {

// GPUs and adapters, by the names of their facts: "gpu/0000:1b:00.0", "hca/mlx5_0".
std::vector<std::string> end_points(const Facts& node) {
  std::vector<std::string> keys;
  for (const char* kind : {"gpu", "hca"}) {
    for (const std::string& name : node.under(kind)) keys.push_back(fmt::format("{}/{}", kind, name));
  }
  return keys;
}

std::string people_call(const std::string& key) {
  if (key.starts_with("gpu/")) return "GPU " + key.substr(4);
  if (key.starts_with("hca/")) return "adapter " + key.substr(4);
  return "bridge " + key.substr(key.find('/') + 1);
}

std::vector<std::string> all_links(const Facts& node) {
  std::vector<std::string> keys = end_points(node);
  for (const std::string& bridge : node.under("bridge")) keys.push_back("bridge/" + bridge);
  return keys;
}

// The first reading that could not be read, of one name of all links.
const machine::Reading* unreadable(const Facts& node, const std::vector<std::string>& keys, const std::string& name) {
  for (const std::string& key : keys) {
    if (const auto& reading = node[key + name]; reading.access == machine::Access::unreadable) return &reading;
  }
  return nullptr;
}

// Bits of the ACS control register that send requests between two devices up to the processor: request redirect,
// completion redirect, upstream forwarding (PCI Express Base Specification, 7.7.11.3).
constexpr unsigned acs_redirects = 0x04 | 0x08 | 0x10;

// How many bridges two devices have in common: none means that they meet in the processor.
std::size_t common_bridges(const Facts& node, const std::string& a, const std::string& b) {
  const auto first = pci_path(node, a), second = pci_path(node, b);
  return static_cast<std::size_t>(std::ranges::mismatch(first, second).in1 - first.begin());
}

}  // namespace

void look::pcie_width(const Node& node, const Cluster&, Findings& out) {
  const Facts& facts = node.facts;
  if (end_points(facts).empty()) return out.skip("no GPU and no adapter for RDMA");
  bool any = false;
  for (const std::string& key : all_links(facts)) {
    const auto now = lanes(facts, key + "/width"), most = both_ends(facts, key, "/max_width", lanes);
    any = any || (now && most);
    if (!now || !most || *now >= *most) continue;
    out.fail(fmt::format("{} runs on {:.0f} of {:.0f} PCIe lanes", people_call(key), *now, *most),
             "look again under load; then reseat the card or its riser, clean its contacts, or replace it");
  }
  for (const std::string& gpu : facts.under("nvml")) {  // where /sys is hidden, the driver still tells
    const auto now = lanes(facts, "nvml/" + gpu + "/pcie_width"),
               most = lanes(facts, "nvml/" + gpu + "/pcie_max_width");
    any = any || (now && most);
    if (!now || !most || *now >= *most || lanes(facts, "gpu/" + gpu + "/width")) continue;
    out.fail(fmt::format("GPU {} runs on {:.0f} of {:.0f} PCIe lanes", gpu, *now, *most),
             "look again under load; then reseat the card or its riser, clean its contacts, or replace it");
  }
  const machine::Reading* hidden = unreadable(facts, all_links(facts), "/width");
  if (hidden != nullptr) out.unknown("the width of a PCIe link", hidden->why);
  out.conclude(any, "all lanes", "the links' widths are hidden, as in virtual machines");
}

// Adapters do not slow their links down when idle; GPUs do, so that theirs say something under load only.
void look::pcie_speed(const Node& node, const Cluster&, Findings& out) {
  const Facts& facts = node.facts;
  bool any = false;
  std::vector<std::string> adapters;
  for (const std::string& hca : facts.under("hca")) adapters.push_back("hca/" + hca);
  if (adapters.empty()) return out.skip("no adapter for RDMA; the links of idle GPUs are slow on purpose");
  for (const std::string& key : adapters) {
    const auto now = gigatransfers(facts, key + "/speed"), most = both_ends(facts, key, "/max_speed", gigatransfers);
    any = any || (now && most);
    if (!now || !most || *now >= *most) continue;
    out.fail(fmt::format("{} runs at {:.0f} of {:.0f} GT/s", people_call(key), *now, *most),
             "reseat the card, or set the slot's speed in the BIOS");
  }
  if (const auto* hidden = unreadable(facts, adapters, "/speed"); hidden != nullptr) {
    out.unknown("the speed of a PCIe link", hidden->why);
  }
  out.conclude(any, "full speed", "the links' speeds are hidden, as in virtual machines");
}

void look::pcie_acs(const Node& node, const Cluster&, Findings& out) {
  const Facts& facts = node.facts;
  // A root port's bits do not concern devices below one switch, which is where peers meet.
  std::vector<std::string> switch_ports;
  for (const std::string& bridge : facts.under("bridge")) {
    if (facts.text("bridge/" + bridge + "/above") != "host") switch_ports.push_back(bridge);
  }
  if (switch_ports.empty()) return out.skip("no PCIe switch above GPUs or adapters");
  const bool needed = is_virtual(facts) || is_arm(facts);
  std::vector<std::string> redirecting;
  for (const std::string& bridge : switch_ports) {
    const machine::Reading& reading = facts["bridge/" + bridge + "/acs"];
    if (reading.access == machine::Access::unreadable) {
      if (needed) return out.skip("virtual machines and Grace need ACS as it is set");
      return out.unknown("ACS of the PCIe switches", reading.why, "run doctor once as root");
    }
    const std::string_view digits =
        std::string_view(reading.text).substr(std::min<std::size_t>(2, reading.text.size()));
    const unsigned control = number_in<unsigned>(digits, 16).value_or(0);
    if (reading.ok() && (control & acs_redirects) != 0) redirecting.push_back(bridge);
  }
  if (redirecting.empty()) return out.pass("off");
  const std::string evidence =
      fmt::format("ACS is on at {} ({})", plural(std::ssize(redirecting), "port") + " of PCIe switches",
                  join_first(redirecting, 2));
  if (needed) return out.info(evidence + ", as virtual machines and Grace need it");
  out.warn(evidence + ": what GPUs and adapters send each other goes through the processor",
           "turn it off in the BIOS, or with `setpci -s BRIDGE ECAP_ACS+6.w=0000` after each start");
}

void look::pcie_iommu(const Node& node, const Cluster&, Findings& out) {
  const Facts& facts = node.facts;
  const std::vector<std::string> keys = end_points(facts);
  if (keys.empty()) return out.skip("no GPU and no adapter for RDMA");
  if (is_virtual(facts)) return out.skip("the hypervisor decides");
  if (const auto* hidden = unreadable(facts, keys, "/iommu"); hidden != nullptr) {
    return out.unknown("the mode of the IOMMU", hidden->why);
  }
  std::set<std::string> modes;
  for (const std::string& key : keys) {
    if (facts.has(key + "/iommu")) modes.insert(facts.text(key + "/iommu"));
  }
  const bool translates = std::ranges::any_of(modes, [](const std::string& mode) { return mode.starts_with("DMA"); });
  if (is_arm(facts)) {
    if (modes.empty() || translates) return out.pass(modes.empty() ? "off" : *modes.begin());
    return out.warn("the IOMMU passes addresses through; Grace wants it to translate them",
                    "start the kernel without iommu.passthrough=1");
  }
  if (!translates) return out.pass(modes.empty() ? "off" : *modes.begin());
  out.warn("the IOMMU translates the addresses of GPUs or adapters: GPUDirect is slow or off",
           "start the kernel with iommu=pt, or turn the IOMMU off in the BIOS");
}

void look::gpu_bar1(const Node& node, const Cluster&, Findings& out) {
  const Facts& facts = node.facts;
  const std::vector<std::string> gpus = gpus_of(facts);
  if (gpus.empty()) return out.skip("no NVIDIA GPU in /sys");
  if (is_arm(facts)) return out.skip("Grace reaches its GPUs otherwise");
  constexpr double small = 256 << 20, gib = 1 << 30;
  std::vector<std::string> silent;
  for (const std::string& gpu : gpus) {
    if (is_geforce(gpu_model(facts, gpu))) continue;
    const auto from_driver = facts.number("nvml/" + gpu + "/bar1_bytes");
    const auto bytes = from_driver ? from_driver : facts.number("gpu/" + gpu + "/bar_bytes");
    if (!bytes) silent.push_back(gpu);
    if (!bytes || *bytes > small) continue;
    out.fail(fmt::format("GPU {} shows {:.2f} GiB of its memory on the bus", gpu, *bytes / gib),
             "turn on \"above 4G decoding\" and \"resizable BAR\" in the BIOS");
  }
  if (!silent.empty())
    out.unknown("the window on the bus of " + join_first(silent, 3), "neither /sys nor NVML tells it");
  if (!out.empty()) return;
  if (is_geforce(gpu_model(facts, gpus.front()))) return out.skip("GeForce has no GPUDirect RDMA");
  out.pass("large");
}

void look::topo_nearest(const Node& node, const Cluster&, Findings& out) {
  const Facts& facts = node.facts;
  const std::vector<std::string> gpus = gpus_of(facts);
  std::set<std::string> adapters, idle;
  for (const Port& port : active_ports(facts)) adapters.insert(port.device);
  for (const Port& port : real_ports(facts)) {
    if (!adapters.contains(port.device)) idle.insert(port.device);
  }
  if (gpus.empty() || adapters.empty()) return out.skip("no pairs of a GPU and an active adapter");
  if (is_arm(facts)) return out.skip("Grace's adapters are not below the GPUs' switches");
  if (is_virtual(facts)) return out.skip("a virtual machine hides the switches; NCCL_TOPO_FILE may tell NCCL of them");
  for (const std::string& hca : adapters) {
    if (!facts.has("hca/" + hca + "/path")) return out.unknown("the place of adapter " + hca, "/sys does not tell");
  }
  std::vector<std::string> far, beside_idle;
  std::set<std::string> idle_beside;
  for (const std::string& gpu : gpus) {
    if (!facts.has("gpu/" + gpu + "/path")) return out.unknown("the place of GPU " + gpu, "/sys does not tell");
    const auto is_near = [&](const std::string& hca) { return common_bridges(facts, "gpu/" + gpu, "hca/" + hca) > 0; };
    if (std::ranges::any_of(adapters, is_near)) continue;
    (std::ranges::any_of(idle, is_near) ? beside_idle : far).push_back(gpu);
    std::ranges::copy_if(idle, std::inserter(idle_beside, idle_beside.end()), is_near);
  }
  if (far.empty() && beside_idle.empty()) return out.pass("one below the same bridge as each GPU");
  const Verdict level = adapters.size() >= gpus.size() ? Verdict::warn : Verdict::info;
  const auto say = [&](const std::vector<std::string>& without, const std::string& why, const std::string& remedy) {
    if (without.empty()) return;
    out.add(level,
            fmt::format("no active adapter shares a PCIe bridge with {} ({}): {}NCCL leaves GPUDirect RDMA off there",
                        plural(std::ssize(without), "GPU"), join_first(without, 3), why),
            remedy);
  };
  say(far, "", "if there is no other slot, measure NCCL_NET_GDR_LEVEL=PHB and SYS");
  const std::vector<std::string> names(idle_beside.begin(), idle_beside.end());
  say(beside_idle, fmt::format("no port of {} is active, and ", join_first(names, 3)),
      "look at the ports of that adapter: see ib.state");
}

}  // namespace harness::doctor
