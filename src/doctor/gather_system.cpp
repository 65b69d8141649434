// Processors, memory and kernel of a node.
#include <algorithm>
#include <map>

#include "base/text.h"
#include "doctor/facts.h"
#include "machine/cpus.h"
#include "machine/tree.h"

namespace harness::doctor {
namespace {

using machine::Access;
using machine::Reading;
using machine::Tree;

// The value that all CPUs share, or each value with its count: "performance 126, powersave 2".
Reading said_by_cpus(const Tree& tree, const machine::Listing& cpus, const std::string& file) {
  std::map<std::string, int> count;
  for (const std::string& cpu : cpus.names) {
    if (!cpu.starts_with("cpu") || !machine::number(cpu.substr(3))) continue;
    Reading said = tree.line(fmt::format("sys/devices/system/cpu/{}/{}", cpu, file));
    if (said.unreadable()) return said;
    if (said.ok() && said.text.empty()) return {Access::unreadable, {}, why_silent(said)};
    if (said.ok()) ++count[said.text];
  }
  if (count.empty()) return {};
  std::vector<std::string> parts;
  for (const auto& [word, times] : count) parts.push_back(fmt::format("{} {}", word, times));
  return {Access::read, count.size() == 1 ? count.begin()->first : join(parts, ", "), {}};
}

// Intel's governor powersave does not save power if the energy preference is "performance".
void add_governor(const Tree& tree, Facts& facts) {
  const machine::Listing cpus = tree.names("sys/devices/system/cpu");
  Reading governor = said_by_cpus(tree, cpus, "cpufreq/scaling_governor");
  if (governor.text == "powersave" &&
      said_by_cpus(tree, cpus, "cpufreq/energy_performance_preference").text == "performance")
    governor.text += ", preferring performance";
  facts.set("cpu/governor", cpus.unreadable() ? Reading{cpus.access, {}, cpus.why} : governor);
}

void add_processor(const Tree& tree, Facts& facts) {
  const Reading info = tree.head("proc/cpuinfo", 16 << 10);  // the first CPU; for many the file has a megabyte
  if (info.unreadable()) return facts.set("os/processor", info);
  const std::string model = machine::value_of(info.text, "model name");
  // Arm servers that take GPUs as cards are wired like those of x86: Ampere's, whose Altra has Neoverse N1 of Arm.
  const std::string maker = machine::value_of(info.text, "CPU implementer");
  const bool of_arm = maker == "0x41" && machine::value_of(info.text, "CPU part") != "0xd0c",
             of_nvidia = maker == "0x4e";
  const char* const arm = of_arm || of_nvidia ? "arm" : "another arm";
  if (!maker.empty() || !model.empty()) facts.set("os/processor", maker.empty() ? "x86" : arm);
  if (!model.empty()) facts.set("cpu/model", model);
  const std::string flags = " " + machine::value_of(info.text, "flags") + " ";
  const bool guest = flags.find(" hypervisor ") != std::string::npos || tree.exists("sys/hypervisor/type") ||
                     tree.line("sys/class/dmi/id/product_name").text.find("Virtual") != std::string::npos;
  if (info.ok()) facts.set("os/virtual", guest ? "yes" : "no");
}

// Kubernetes' containerd leaves no other trace than what it mounts: a pod's message of its end, and the driver's files
// of the container's GPUs, one by one; with CDI (Container Device Interface), not even these.
void add_container(const Tree& tree, Facts& facts) {
  const Reading group = tree.bytes("proc/1/cgroup");
  const std::string mounts = tree.bytes("proc/self/mountinfo").text;
  const bool inside = tree.exists(".dockerenv") || tree.exists("run/.containerenv") ||
                      mounts.find(" /proc/driver/nvidia ") != std::string::npos ||
                      mounts.find(" /dev/termination-log ") != std::string::npos ||
                      std::ranges::any_of(std::initializer_list<const char*>{"docker", "kubepods", "containerd", "lxc"},
                                          [&](const char* word) { return group.text.find(word) != std::string::npos; });
  if (inside || group.ok()) facts.set("os/container", inside ? "yes" : "no");
}

void add_memory(const Tree& tree, Facts& facts) {
  const Reading info = tree.bytes("proc/meminfo");
  const auto kb = [&](const char* key) { return number_of(machine::value_of(info.text, key)); };
  const auto total = kb("MemTotal"), swap = kb("SwapTotal"), free = kb("SwapFree");
  if (total) facts.set("memory/total_kb", fmt::format("{:.0f}", *total));
  if (swap && free) facts.set("memory/swapped_gib", fmt::format("{:.1f}", (*swap - *free) / (1 << 20)));
  for (const char* name : {"memory/total_kb", "memory/swapped_gib"}) {
    if (info.unreadable()) facts.set(name, info);
  }
  facts.set("memory/numa_balancing", tree.line("proc/sys/kernel/numa_balancing"));
  facts.set("memory/numa_nodes", tree.line("sys/devices/system/node/online"));
}

// The load that does not indicate other programs: that of this program, or a twentieth of the CPUs.
void add_load(const Tree& tree, Facts& facts) {
  Reading load = tree.line("proc/loadavg");
  load.text = load.text.substr(0, load.text.find(' '));
  facts.set("cpu/load", load);
  const Reading online = tree.line("sys/devices/system/cpu/online");
  facts.set("cpu/online", online);
  const double twentieth = 0.05 * static_cast<double>(machine::cpus_in(online.text).count());
  facts.set("cpu/usual_load",
            load.ok() ? Reading{Access::read, fmt::format("{:.1f}", std::max(1.0, twentieth)), {}} : load);
}

}  // namespace

void gather_system(const Tree& tree, Facts& facts) {
  facts.set("os/kernel", tree.line("proc/sys/kernel/osrelease"));
  add_processor(tree, facts);
  add_container(tree, facts);
  add_memory(tree, facts);
  const machine::GroupLimit quota = machine::cpu_quota(tree);
  const std::string cpus = quota.value > 0 ? fmt::format("{:.2f}", quota.value) : "none";
  facts.set("cpu/quota", Reading{quota.access, quota.access == Access::read ? cpus : "", quota.why});
  add_load(tree, facts);
  add_governor(tree, facts);
  facts.set("cpu/no_turbo", tree.line("sys/devices/system/cpu/intel_pstate/no_turbo"));
  facts.set("cpu/boost", tree.line("sys/devices/system/cpu/cpufreq/boost"));
}

}  // namespace harness::doctor
