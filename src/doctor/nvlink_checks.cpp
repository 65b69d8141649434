// The links between GPUs: NVLink, its switches and the software that sets them up.
#include <algorithm>
#include <cstdint>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "doctor/check.h"
#include "doctor/docs.h"

namespace harness::doctor {
namespace {

void nvlink(const Node& node, const Cluster&, Findings& out) {
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
  out.conclude(told, "all active", "no NVLink");
}

// Two bits of NVML's mask for each question (nvmlGpuFabricInfo_v3_t in nvml.h); 1: yes.
std::string fabric_trouble(std::uint64_t health) {
  std::vector<std::string> troubles;
  unsigned shift = 0;
  for (const char* words : {"less bandwidth", "routes are being repaired", "routes are broken", "accesses time out"}) {
    if (((health >> shift) & 3u) == 1) troubles.emplace_back(words);
    shift += 2;
  }
  return join(troubles, ", ");
}

void fabric(const Node& node, const Cluster&, Findings& out) {
  if (no_nvml(node, out)) return;
  constexpr double in_progress = 2, completed = 3;
  bool told = false;
  for (const std::string& gpu : node.facts.under("nvml")) {
    const auto state = node.facts.number("nvml/" + gpu + "/fabric_state"),
               status = node.facts.number("nvml/" + gpu + "/fabric_status");
    told = told || state;
    if (!state || (*state == completed && status == 0)) continue;
    out.fail(
        fmt::format("GPU {} has not joined the NVLink fabric ({})", gpu,
                    *state == in_progress ? "in progress"
                                          : fmt::format("state {:.0f}, status {:.0f}", *state, status.value_or(0))),
        "start nvidia-fabricmanager (or the rack's), of the driver's version, and look at its log");
  }
  for (const std::string& gpu : node.facts.under("nvml")) {
    const auto health = node.facts.number("nvml/" + gpu + "/fabric_health");
    const std::string trouble = fabric_trouble(static_cast<std::uint64_t>(health.value_or(0)));
    if (trouble.empty()) continue;
    out.warn(fmt::format("the NVLink fabric of GPU {}: {}", gpu, trouble),
             "look at the fabric manager's log (of a rack, NMX-C's) and at the switches");
  }
  out.conclude(told, "joined", "no NVLink fabric that tells its state");
}

void nvlink_domain(const Node& node, const Cluster&, Findings& out) {
  if (no_nvml(node, out)) return;
  std::map<std::string, std::vector<std::string>> gpus;  // by domain
  for (const std::string& gpu : node.facts.under("nvml")) {
    if (const std::string domain = nvlink_domain_of(node.facts, gpu); !domain.empty()) gpus[domain].push_back(gpu);
  }
  if (gpus.empty()) return out.skip("no NVLink between nodes");
  if (gpus.size() == 1) return out.pass(gpus.begin()->first);
  std::vector<std::string> parts;
  for (const auto& [domain, members] : gpus) parts.push_back(fmt::format("{}: {}", domain, join_first(members, 4)));
  out.fail("the GPUs of the node belong to different NVLink domains: " + join(parts, "; "),
           "look at the partitions that the rack's fabric manager (NMX-C) has made, and at its log");
}

bool is_one_of(const std::string& model, std::initializer_list<const char*> names) {
  return std::ranges::any_of(names, [&](const char* name) { return model.find(name) != std::string::npos; });
}

// H200 NVL and H800 PCIe are cards with bridges.
bool is_on_switched_board(const std::string& model) {
  return is_one_of(model, {"A100-SXM", "H100 80GB HBM3", "H200", "H800", "H20", "B200", "B300"}) &&
         !is_one_of(model, {" NVL", "PCIe"}) && !is_rack_scale(model);
}

// GPUs on a board with NVLink switches need the fabric manager on their node; trays of a rack have it elsewhere.
void fabric_manager(const Node& node, const Cluster&, Findings& out) {
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

// It must be of the driver's version, to the last number.
void fabric_manager_version(const Node& node, const Cluster&, Findings& out) {
  const Facts& facts = node.facts;
  if (!facts.has("daemon/fabric_manager")) return out.skip("no fabric manager runs here");
  const machine::Reading &version = facts["fabric_manager/version"], &driver = facts["driver/version"];
  if (out.nothing_in(version, "the fabric manager's version", "it writes no log where it usually does")) return;
  if (out.nothing_in(driver, "the driver's version", "the driver does not tell its version")) return;
  if (version.text == driver.text) return out.pass(version.text);
  out.fail(fmt::format("the fabric manager is of version {}, the driver of {}", version.text, driver.text),
           fmt::format("install nvidia-fabricmanager {} and start it again", driver.text));
}

void link_errors(const Node& node, const Cluster&, Findings& out) {
  if (no_nvml(node, out)) return;
  bool told = false;
  std::vector<std::string> counted;
  for (const std::string& gpu : node.facts.under("nvml")) {
    const auto recoveries = node.facts.number("nvml/" + gpu + "/nvlink_recoveries"),
               wrong = node.facts.number("nvml/" + gpu + "/nvlink_crc_errors");
    told = told || recoveries || wrong;
    if (recoveries.value_or(0) + wrong.value_or(0) <= 0) continue;
    counted.push_back(
        fmt::format("{} ({:.0f} recoveries, {:.0f} wrong checksums)", gpu, recoveries.value_or(0), wrong.value_or(0)));
  }
  if (!counted.empty()) {
    return out.info("NVLinks have had errors since the driver was loaded: " + join_first(counted, 3),
                    "if they grow during a run, reset the GPU; then look at the board");
  }
  if (told) return out.pass("none");
  out.skip("no NVLink that counts errors in this way");
}

void switch_faults(const Node& node, const Cluster&, Findings& out) {
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

}  // namespace

std::vector<Check> nvlink_checks() {
  return {
      {"gpu.nvlink", "are all NVLinks active", "NVML", docs::nvml, nvlink},
      {"gpu.nvlink_errors", "have NVLinks had errors", "NVML", docs::nvml, link_errors},
      {"gpu.fabric", "have the GPUs joined the NVLink fabric, and is it whole", "NVML", docs::fabric, fabric},
      {"gpu.fabric_manager", "does the fabric manager run where it must", "/proc/*/comm", docs::fabric, fabric_manager},
      {"gpu.fabric_manager_version", "are the fabric manager and the driver of one version",
       "/var/log/fabricmanager.log, /proc/driver/nvidia/version", docs::fabric, fabric_manager_version},
      {"gpu.nvlink_domain", "are the GPUs of a node in one NVLink domain of several nodes", "NVML", docs::imex,
       nvlink_domain},
      {"gpu.sxid", "have the NVLink switches reported faults", "/dev/kmsg", docs::fabric, switch_faults}};
}

}  // namespace harness::doctor
