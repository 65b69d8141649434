#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string_view>
#include <thread>

#include "base/error.h"
#include "base/text.h"
#include "doctor/gather.h"
#include "machine/cpus.h"
#include "machine/tree.h"

namespace harness::doctor {
namespace {

using machine::Access;
using machine::Reading;
using machine::Tree;

void add_line(const Tree& tree, Facts& facts, const std::string& name, const std::string& path) {
  facts.set(name, tree.line(path));
}

// The values of all CPUs, with how often each occurs: "performance 126, powersave 2".
Reading said_by_cpus(const Tree& tree, const machine::Listing& cpus, const std::string& file) {
  std::map<std::string, int> count;
  for (const std::string& cpu : cpus.names) {
    if (!cpu.starts_with("cpu") || !machine::number(cpu.substr(3))) continue;
    Reading said = tree.line(fmt::format("sys/devices/system/cpu/{}/{}", cpu, file));
    if (said.access == Access::unreadable) return said;
    if (said.ok()) ++count[said.text];
  }
  if (count.empty()) return {};
  if (count.size() == 1) return {Access::read, count.begin()->first, {}};
  std::vector<std::string> parts;
  for (const auto& [word, cpus_with_it] : count) parts.push_back(fmt::format("{} {}", word, cpus_with_it));
  return {Access::read, join(parts, ", "), {}};
}

void add_processor(const Tree& tree, Facts& facts) {
  const Reading info = tree.head("proc/cpuinfo", 16 << 10);  // the first CPU: of many the file has a megabyte
  if (info.access == Access::unreadable) return facts.set("os/processor", info);
  const std::string model = machine::value_of(info.text, "model name");
  const bool arm = !machine::value_of(info.text, "CPU implementer").empty();
  if (arm || !model.empty()) facts.set("os/processor", arm ? "arm" : "x86");
  if (!model.empty()) facts.set("cpu/model", model);
  const std::string flags = " " + machine::value_of(info.text, "flags") + " ";
  const bool guest = flags.find(" hypervisor ") != std::string::npos || tree.exists("sys/hypervisor/type") ||
                     tree.line("sys/class/dmi/id/product_name").text.find("Virtual") != std::string::npos;
  if (info.ok()) facts.set("os/virtual", guest ? "yes" : "no");
}

void add_container(const Tree& tree, Facts& facts) {
  const Reading group = tree.bytes("proc/1/cgroup");
  const bool inside = tree.exists(".dockerenv") || tree.exists("run/.containerenv") ||
                      std::ranges::any_of(std::initializer_list<const char*>{"docker", "kubepods", "containerd", "lxc"},
                                          [&](const char* word) { return group.text.find(word) != std::string::npos; });
  if (inside || group.ok()) facts.set("os/container", inside ? "yes" : "no");
}

void add_memory(const Tree& tree, Facts& facts) {
  const Reading info = tree.bytes("proc/meminfo");
  if (info.access == Access::unreadable) facts.set("memory/total_kb", info);
  for (const auto& [name, key] : {std::pair{"memory/total_kb", "MemTotal"},
                                  {"memory/swap_kb", "SwapTotal"},
                                  {"memory/swap_free_kb", "SwapFree"}}) {
    const std::string value = machine::value_of(info.text, key);
    std::string_view rest = value;
    if (const auto number = machine::number(machine::take_word(rest))) facts.set(name, fmt::format("{:.0f}", *number));
  }
  add_line(tree, facts, "memory/numa_balancing", "proc/sys/kernel/numa_balancing");
  add_line(tree, facts, "memory/numa_nodes", "sys/devices/system/node/online");
}

void add_quota(const Tree& tree, Facts& facts) {
  const machine::GroupLimit quota = machine::cpu_quota(tree);
  if (quota.value > 0) {
    facts.set("cpu/quota", fmt::format("{:.2f}", quota.value));
  } else if (quota.access == Access::unreadable) {
    facts.set_unreadable("cpu/quota", quota.why);
  } else if (quota.access == Access::read) {
    facts.set("cpu/quota", "none");
  }
}

// Whether the CPUs could raise their clock beyond the nominal one if boost were on, by their scale of performance
// (ACPI CPPC). Where the highest step is the nominal one there is nothing to turn on.
Reading boost_headroom(const Tree& tree, const machine::Listing& cpus) {
  bool told = false;
  for (const std::string& cpu : cpus.names) {
    if (!cpu.starts_with("cpu") || !machine::number(cpu.substr(3))) continue;
    const std::string folder = fmt::format("sys/devices/system/cpu/{}/acpi_cppc/", cpu);
    const Reading highest = tree.line(folder + "highest_perf"), nominal = tree.line(folder + "nominal_perf");
    for (const Reading& reading : {highest, nominal}) {
      if (reading.access == Access::unreadable) return reading;
    }
    const auto most = machine::number(highest.text), usual = machine::number(nominal.text);
    if (!most || !usual) continue;
    told = true;
    if (*most > *usual) return {Access::read, "yes", {}};
  }
  return told ? Reading{Access::read, "no", {}} : Reading{};
}

// The sum of all CPUs' columns and the one that other guests of the host took, in ticks: "cpu  user nice system idle
// iowait irq softirq steal …"; what follows is part of user and nice.
struct Ticks {
  double all = 0, stolen = 0;
};
std::optional<Ticks> ticks_in(const Reading& stat) {
  std::string_view rest = stat.text;
  if (machine::take_word(rest) != "cpu") return std::nullopt;
  constexpr int columns = 8, steal = 7;
  Ticks ticks;
  for (int column = 0; column < columns; ++column) {
    const auto value = machine::number(machine::take_word(rest));
    if (!value) return std::nullopt;
    ticks.all += *value;
    if (column == steal) ticks.stolen = *value;
  }
  return ticks;
}

// The share of the CPUs' time that went to other guests: since the node was started, and of a guest in a tenth of a
// second.
void add_steal(const Tree& tree, Facts& facts) {
  const auto look = [&] { return tree.line("proc/stat"); };
  const Reading first = look();
  if (first.access == Access::unreadable) facts.set("cpu/steal_since_start", first);
  const auto before = ticks_in(first);
  if (!before || before->all <= 0) return;
  facts.set("cpu/steal_since_start", fmt::format("{:.4f}", before->stolen / before->all));
  if (!tree.is_own_machine() || facts.text("os/virtual") != "yes") return;
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto after = ticks_in(look());
  if (after && after->all > before->all)
    facts.set("cpu/steal", fmt::format("{:.4f}", (after->stolen - before->stolen) / (after->all - before->all)));
}

}  // namespace

void gather_system(const Tree& tree, Facts& facts) {
  add_line(tree, facts, "os/kernel", "proc/sys/kernel/osrelease");
  add_processor(tree, facts);
  add_container(tree, facts);
  add_memory(tree, facts);
  add_quota(tree, facts);
  add_steal(tree, facts);
  const std::string cpus = "sys/devices/system/cpu/";
  const machine::Listing listed = tree.names("sys/devices/system/cpu");
  if (listed.access == Access::unreadable) facts.set_unreadable("cpu/governor", listed.why);
  facts.set("cpu/governor", said_by_cpus(tree, listed, "cpufreq/scaling_governor"));
  facts.set("cpu/preference", said_by_cpus(tree, listed, "cpufreq/energy_performance_preference"));
  add_line(tree, facts, "cpu/no_turbo", cpus + "intel_pstate/no_turbo");
  add_line(tree, facts, "cpu/boost", cpus + "cpufreq/boost");
  facts.set("cpu/boost_headroom", boost_headroom(tree, listed));
  add_line(tree, facts, "cpu/online", cpus + "online");
  add_line(tree, facts, "cpu/load", "proc/loadavg");
}

}  // namespace harness::doctor
