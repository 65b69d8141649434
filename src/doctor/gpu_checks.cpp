// What the driver and the bus say of the GPUs, without load.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "doctor/check.h"
#include "doctor/docs.h"
#include "machine/gpu_statistics.h"

namespace harness::doctor {
namespace {

void answers(const Node& node, const Cluster&, Findings& out) {
  if (!has_gpus(node.facts)) return out.skip("no NVIDIA GPU");
  const machine::Reading& nvml = node.facts["nvml"];
  if (!nvml.ok()) {
    return out.unknown("the GPUs' state", nvml.why.empty() ? "NVML tells of the running machine only" : nvml.why,
                       "does `nvidia-smi` work on this node?");
  }
  if (!node.facts.any("nvml")) return out.unknown("the GPUs' state", "NVML lists no GPU");
  out.pass(plural(std::ssize(node.facts.under("nvml")), "GPU"));
}

// The GPUs whose fact `name` is `value`, joined; "" for none. `told` is whether any GPU told it.
std::string gpus_with(const Facts& node, const std::string& name, std::string_view value, bool& told) {
  std::vector<std::string> found;
  for (const std::string& gpu : node.under("nvml")) {
    const machine::Reading& reading = node[fmt::format("nvml/{}/{}", gpu, name)];
    told = told || reading.ok();
    if (reading.text == value) found.push_back(gpu);
  }
  return join_first(found, 3);
}

void count(const Node& node, const Cluster&, Findings& out) {
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

void driver(const Node& node, const Cluster&, Findings& out) {
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

void persistence(const Node& node, const Cluster&, Findings& out) {
  if (no_nvml(node, out)) return;
  bool told = false;
  const std::string off = gpus_with(node.facts, "persistence", "false", told);
  if (!told) return out.skip("the GPUs do not tell");
  if (off.empty() || node.facts.has("daemon/persistence")) return out.pass("on");
  out.warn("persistence mode is off: " + off + ": the driver starts anew with each process",
           "start nvidia-persistenced, or `nvidia-smi -pm 1`");
}

void mode(const Node& node, const Cluster&, Findings& out) {
  if (no_nvml(node, out)) return;
  bool told = false;
  const std::string mig = gpus_with(node.facts, "mig", "true", told);
  if (!mig.empty()) out.warn("MIG is on: " + mig + ": NCCL uses no parts of a GPU", "`nvidia-smi -mig 0`");
  bool mode_told = false;
  const std::string prohibited = gpus_with(node.facts, "compute_mode", "2", mode_told);
  if (!prohibited.empty()) out.fail("no process may use " + prohibited, "`nvidia-smi -c 0`");
  const std::string exclusive = gpus_with(node.facts, "compute_mode", "3", mode_told);
  if (!exclusive.empty()) out.info("only one process at a time may use " + exclusive, "`nvidia-smi -c 0`");
  out.conclude(told || mode_told, "MIG off, any process", "the GPUs do not tell");
}

void slowed(const Node& node, const Cluster&, Findings& out) {
  if (no_nvml(node, out)) return;
  // NVML's bits: hardware slowdown, hardware thermal slowdown, power brake; software thermal; clocks by setting.
  constexpr std::uint64_t hardware = 0x8 | 0x40 | 0x80, heat = 0x20, by_setting = 0x2;
  bool told = false;
  for (const std::string& gpu : node.facts.under("nvml")) {
    const auto number = node.facts.number("nvml/" + gpu + "/throttle_reasons");
    told = told || number;
    const auto bits = static_cast<std::uint64_t>(number.value_or(0));
    if ((bits & (hardware | heat)) != 0) {
      out.warn(fmt::format("GPU {} is slowed down: {}", gpu, machine::harmful_throttling(bits)),
               "look at power cables, fans and the temperature of the air or water");
    } else if ((bits & by_setting) != 0) {
      out.info(fmt::format("somebody has set the clocks of GPU {}", gpu), "`nvidia-smi -rac`, `nvidia-smi -rgc`");
    }
  }
  out.conclude(told, "nothing slows them down", "the GPUs do not tell");
}

void power(const Node& node, const Cluster&, Findings& out) {
  if (no_nvml(node, out)) return;
  bool told = false;
  for (const std::string& gpu : node.facts.under("nvml")) {
    const auto now = node.facts.number("nvml/" + gpu + "/power_limit_w"),
               usual = node.facts.number("nvml/" + gpu + "/default_power_limit_w");
    told = told || (now && usual);
    if (!now || !usual || *now >= *usual) continue;
    out.warn(fmt::format("GPU {} may use {:.0f} W, not {:.0f}", gpu, *now, *usual),
             fmt::format("`nvidia-smi -pl {:.0f}`", *usual));
  }
  out.conclude(told, "full", "the GPUs do not tell");
}

void temperature(const Node& node, const Cluster&, Findings& out) {
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
  if (out.empty()) out.pass(fmt::format("{:.0f} °C", median));
}

void memory_errors(const Node& node, const Cluster&, Findings& out) {
  if (no_nvml(node, out)) return;
  bool told = false;
  const std::string failed = gpus_with(node.facts, "row_remap_failed", "true", told);
  if (!failed.empty()) out.fail("memory rows of " + failed + " could not be replaced", "replace the GPU");
  const std::string pending = gpus_with(node.facts, "row_remap_pending", "true", told);
  if (!pending.empty()) out.warn("memory rows of " + pending + " wait for a reset to be replaced", "`nvidia-smi -r`");
  for (const std::string& gpu : node.facts.under("nvml")) {
    const auto errors = node.facts.number("nvml/" + gpu + "/ecc_uncorrected");
    told = told || errors;
    if (errors > 0) {
      out.fail(fmt::format("GPU {} had {:.0f} memory errors that ECC could not correct", gpu, *errors),
               "reset the GPU; replace it if they come back");
    }
  }
  out.conclude(told, "none", "the GPUs have no ECC");
}

void others(const Node& node, const Cluster&, Findings& out) {
  if (no_nvml(node, out)) return;
  bool told = false;
  std::vector<std::string> busy;
  for (const std::string& gpu : node.facts.under("nvml")) {
    const auto processes = node.facts.number("nvml/" + gpu + "/processes");
    told = told || processes;
    if (processes > 0) busy.push_back(gpu);
  }
  if (!busy.empty()) {
    return out.fail("other processes use " + join_first(busy, 3), "`nvidia-smi` names them: end them, or wait");
  }
  if (told) return out.pass("none");
  out.skip("the driver does not tell");
}

// By NVIDIA's catalogue, those after which a GPU or its links must be reset, or worse.
bool is_severe(int xid) {
  static const std::set<int> severe{48,  62,  64,  74,  79,  95,  109, 119, 120, 136, 140,
                                    143, 144, 145, 146, 147, 148, 149, 150, 151, 154, 158};
  return severe.contains(xid);
}

// What the driver says is to be done, after all that it has seen.
void recovery(const Node& node, const Cluster&, Findings& out) {
  if (no_nvml(node, out)) return;
  static const std::map<int, std::pair<std::string, std::string>> actions{
      {1, {"be reset", "`nvidia-smi --gpu-reset`"}},
      {2, {"have its node restarted", "restart the node; replace the GPU if it comes back"}},
      {3, {"be left by the jobs that use its peers", "end the jobs on the node"}},
      {4, {"be left by all jobs and be reset", "end the jobs on the node, then `nvidia-smi --gpu-reset`"}}};
  bool told = false;
  for (const std::string& gpu : node.facts.under("nvml")) {
    const auto action = node.facts.number("nvml/" + gpu + "/recovery_action");
    told = told || action;
    if (!action || *action == 0) continue;
    const auto known = actions.find(static_cast<int>(*action));
    if (known == actions.end()) {
      out.fail(fmt::format("the driver asks for action {:.0f} on GPU {}", *action, gpu), "`nvidia-smi -q` names it");
    } else {
      out.fail(fmt::format("GPU {} is to {}, says the driver", gpu, known->second.first), known->second.second);
    }
  }
  out.conclude(told, "nothing is to be done", "the driver does not tell");
}

void xid(const Node& node, const Cluster&, Findings& out) {
  if (!has_gpus(node.facts)) return out.skip("no NVIDIA GPU");
  if (const auto& log = node.facts["log"]; !log.ok()) {
    return out.unknown("the kernel's log", log.why.empty() ? "there is none" : log.why, "run doctor once as root");
  }
  for (const std::string& number : node.facts.under("log/xid")) {
    const std::string evidence =
        fmt::format("Xid {} since the start: {}", number, node.facts.text("log/xid/" + number));
    int xid = 0;
    std::from_chars(number.data(), number.data() + number.size(), xid);  // of a file from elsewhere it may be none
    if (is_severe(xid)) {
      out.warn(evidence, "reset the GPU, or restart the node; replace the GPU if it comes back");
    } else {
      out.info(evidence);
    }
  }
  if (out.empty()) out.pass("none since the start");
}

}  // namespace

std::vector<Check> gpu_checks() {
  return {
      {"gpu.count", "does the driver see every GPU of the bus", "/sys/bus/pci/devices, /proc/driver/nvidia/gpus",
       docs::xid, count},
      {"gpu.driver", "is NVIDIA's driver in charge of the GPUs", "/sys/bus/pci/devices/*/driver", docs::nvml, driver},
      {"gpu.nvml", "does the driver tell the GPUs' state", "NVML", docs::nvml, answers},
      {"gpu.persistence", "does the driver stay loaded", "NVML", docs::nvml, persistence},
      {"gpu.mode", "are the GPUs whole, and open to every process", "NVML", docs::nvml, mode},
      {"gpu.slowed", "does something slow the GPUs down without load", "NVML", docs::nvml, slowed},
      {"gpu.power", "may the GPUs use their usual power", "NVML", docs::nvml, power},
      {"gpu.temperature", "is one GPU hotter than its neighbours", "NVML", docs::nvml, temperature},
      {"gpu.memory_errors", "has memory failed", "NVML", docs::nvml, memory_errors},
      {"gpu.processes", "does another process use the GPUs", "NVML", docs::nvml, others},
      {"gpu.recovery", "does the driver want a GPU reset, or its node restarted", "NVML", docs::nvml, recovery},
      {"gpu.xid", "has the driver reported faults", "/dev/kmsg", docs::xid, xid}};
}

}  // namespace harness::doctor
