// The links and bridges between GPUs, adapters and the processor.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "doctor/check.h"
#include "machine/tree.h"
#include "nccl/topology.h"

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

// What links have now and at most, and how it is read: lanes, or the rate of one.
struct LinkFact {
  std::string what, now, most;  // "width", "/width", "/max_width"
  std::optional<double> (*read)(const Facts&, const std::string&);
  std::string evidence, remedy;  // {0}: the device, {1} and {2}: what it has and could have
};

// Says unknown of the links that do not tell; `told`: those that do. A hypervisor hides those of bridges, or all of
// a kind.
void say_silent(const Node& node, const std::map<std::string, std::string>& reasons,
                const std::vector<std::string>& told, const std::string& what, Findings& out) {
  std::map<std::string, std::vector<std::string>> silent;  // by the reason
  for (const auto& [key, why] : reasons) {
    const std::string kind = key.substr(0, key.find('/') + 1);
    const bool alike = std::ranges::any_of(told, [&](const std::string& other) { return other.starts_with(kind); });
    if (!is_virtual(node.facts) || (alike && kind != "bridge/")) silent[why].push_back(people_call(key));
  }
  for (const auto& [why, names] : silent) out.unknown(fmt::format("the {} of {}", what, join_first(names, 3)), why);
}

void judge_links(const Node& node, const std::vector<std::string>& keys, const LinkFact& fact, Findings& out) {
  const Facts& facts = node.facts;
  std::vector<std::string> told;
  std::map<std::string, std::string> silent;  // why, by the names of their facts
  for (const std::string& key : keys) {
    auto now = fact.read(facts, key + fact.now), most = both_ends(facts, key, fact.most, fact.read);
    const std::string by_driver = key.starts_with("gpu/") ? "nvml/" + key.substr(4) + "/pcie" : "";
    if ((!now || !most) && !by_driver.empty()) {  // where /sys hides them, the driver still tells
      const auto own = fact.read(facts, by_driver + "_width"), own_most = fact.read(facts, by_driver + "_max_width");
      if (own && own_most) {
        now = own;
        most = own_most;
      }
    }
    if (!now || !most) {
      silent[key] = why_silent(facts.peek(key + (now ? fact.most : fact.now)));
      continue;
    }
    told.push_back(key);
    if (*now < *most) out.fail(fmt::format(fmt::runtime(fact.evidence), people_call(key), *now, *most), fact.remedy);
  }
  say_silent(node, silent, told, fact.what, out);
  out.conclude(!told.empty(), fact.what == "PCIe width" ? "all lanes" : "full speed",
               fmt::format("the hypervisor hides the {} of links", fact.what));
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
  std::vector<std::string> keys = end_points(facts);
  for (const std::string& gpu : facts.under("nvml")) {  // /sys may show none
    if (!facts.any("gpu/" + gpu)) keys.push_back("gpu/" + gpu);
  }
  if (keys.empty()) return out.skip("no GPU and no adapter for RDMA");
  for (const std::string& bridge : facts.under("bridge")) keys.push_back("bridge/" + bridge);
  judge_links(node, keys,
              {"PCIe width", "/width", "/max_width", lanes, "{} runs on {:.0f} of {:.0f} PCIe lanes",
               "look again under load; then reseat the card or its riser, clean its contacts, or replace it"},
              out);
}

// Adapters do not slow their links down when idle; GPUs do, so that theirs say something under load only.
void look::pcie_speed(const Node& node, const Cluster&, Findings& out) {
  std::vector<std::string> adapters;
  for (const std::string& hca : node.facts.under("hca")) adapters.push_back("hca/" + hca);
  if (adapters.empty()) return out.skip("no adapter for RDMA; the links of idle GPUs are slow on purpose");
  judge_links(node, adapters,
              {"PCIe speed", "/speed", "/max_speed", gigatransfers, "{} runs at {:.0f} of {:.0f} GT/s",
               "reseat the card, or set the slot's speed in the BIOS"},
              out);
}

void look::ib_pcie(const Node& node, const Cluster&, Findings& out) {
  if (no_active_ports(node, out)) return;
  const Facts& facts = node.facts;
  std::map<std::string, double> needed;  // by adapter: what its ports carry
  for (const Port& port : active_ports(facts))
    needed["hca/" + port.device] += machine::port_rate_in(facts.text(port.key + "rate"));
  constexpr double giga = 1e9;
  std::vector<std::string> told;
  std::map<std::string, std::string> silent;
  for (const auto& [key, bits] : needed) {
    const auto speed = gigatransfers(facts, key + "/speed"), width = lanes(facts, key + "/width");
    if (!speed || !width) {
      silent[key] = why_silent(facts.peek(key + (speed ? "/width" : "/speed")));
      continue;
    }
    told.push_back(key);
    const double link = nccl::pcie_bits_per_s(*speed, *width);
    if (!(bits > 0)) {
      out.unknown("what the ports of " + people_call(key) + " carry", "see ib.rate");
    } else if (bits > link) {
      out.fail(fmt::format("{} carries {:.0f} Gb/s, its PCIe link {:.0f}", people_call(key), bits / giga, link / giga),
               "put it into a slot with more lanes, or see pcie.width and pcie.speed");
    }
  }
  say_silent(node, silent, told, "PCIe link", out);
  out.conclude(!told.empty(), "enough", "the hypervisor hides the links of the adapters");
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
  std::set<std::string> silent;  // the reasons
  for (const std::string& bridge : switch_ports) {
    const machine::Reading& reading = facts["bridge/" + bridge + "/acs"];
    const auto control = reading.text.starts_with("0x")
                             ? number_in<unsigned>(std::string_view(reading.text).substr(2), 16)
                             : std::nullopt;
    if (control && (*control & acs_redirects) != 0) redirecting.push_back(bridge);
    if (!control && reading.text != "none") silent.insert(why_silent(reading));
  }
  if (needed && redirecting.empty() && !silent.empty())
    return out.skip("virtual machines and Grace need ACS as it is set");
  for (const std::string& why : silent) out.unknown("ACS of the PCIe switches", why, "run doctor once as root");
  if (redirecting.empty()) return out.conclude(true, "off", "");
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
  // Without an IOMMU no device has a mode.
  const bool any = std::ranges::any_of(keys, [&](const std::string& key) { return facts.has(key + "/iommu"); });
  static const std::set<std::string_view> known{"identity", "DMA", "DMA-FQ", "unmanaged", "blocked"};
  std::map<std::string, std::vector<std::string>> silent;  // by the reason
  std::set<std::string> modes;
  for (const std::string& key : keys) {
    const machine::Reading& reading = facts[key + "/iommu"];
    if (known.contains(reading.text)) {
      modes.insert(reading.text);
    } else if (any || reading.access != machine::Access::absent) {
      silent[why_silent(reading)].push_back(people_call(key));
    }
  }
  for (const auto& [why, names] : silent) out.unknown("the mode of the IOMMU for " + join_first(names, 3), why);
  const bool translates = std::ranges::any_of(modes, [](const std::string& mode) { return mode.starts_with("DMA"); });
  if (is_arm(facts)) {
    if (!modes.empty() && !translates)
      out.warn("the IOMMU passes addresses through; Grace wants it to translate them",
               "start the kernel without iommu.passthrough=1");
  } else if (translates) {
    out.warn("the IOMMU translates the addresses of GPUs or adapters: GPUDirect is slow or off",
             "start the kernel with iommu=pt, or turn the IOMMU off in the BIOS");
  }
  out.conclude(true, modes.empty() ? "off" : *modes.begin(), "");
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
    if (pci_path(facts, "hca/" + hca).empty()) return out.unknown("the place of adapter " + hca, "/sys does not tell");
  }
  std::vector<std::string> far, beside_idle;
  std::set<std::string> idle_beside;
  for (const std::string& gpu : gpus) {
    if (pci_path(facts, "gpu/" + gpu).empty()) return out.unknown("the place of GPU " + gpu, "/sys does not tell");
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
