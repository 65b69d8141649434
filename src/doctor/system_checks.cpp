// The processors, the memory and the kernel of a node.
#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "doctor/check.h"
#include "doctor/docs.h"
#include "machine/cpus.h"

namespace harness::doctor {
namespace {

// The switch that is off has the remedy: each driver of the CPUs' clock has its own.
void judge_turbo(const Facts& facts, Findings& out) {
  const std::string evidence = "the CPUs may not raise their clock (turbo is off)";
  if (facts.text("cpu/no_turbo") == "1") {
    out.warn(evidence, "echo 0 > /sys/devices/system/cpu/intel_pstate/no_turbo, or the BIOS");
  } else if (facts.text("cpu/boost") == "0" && facts.text("cpu/boost_headroom") != "no") {
    out.warn(evidence, "echo 1 > /sys/devices/system/cpu/cpufreq/boost, or the BIOS");
  }
}

void governor(const Node& node, const Cluster&, Findings& out) {
  const machine::Reading& governor = node.facts["cpu/governor"];
  const std::string remedy = "cpupower frequency-set -g performance";
  if (out.nothing_in(governor, "the governor of the CPUs", "the kernel does not set the CPUs' clock here")) return;
  const std::string preference = node.facts.text("cpu/preference");
  if (governor.text == "powersave" && preference == "performance") {
    out.info("powersave with the preference performance: nearly as fast as performance", remedy);
  } else if (governor.text != "performance") {
    out.warn("the CPUs' governor is " + governor.text + ", not performance", remedy);
  }
  judge_turbo(node.facts, out);
  if (out.empty()) out.pass(governor.text);
}

void load(const Node& node, const Cluster&, Findings& out) {
  const machine::Reading& reading = node.facts["cpu/load"];
  if (out.nothing_in(reading, "the load", "/proc does not tell the load")) return;
  const auto now = node.facts.number("cpu/load");
  if (!now) return out.unknown("the load", "/proc/loadavg is no number");
  const double cpus = static_cast<double>(machine::cpus_in(node.facts.text("cpu/online")).count());
  constexpr double small_share = 0.05;
  if (*now <= std::max(1.0, small_share * cpus)) return out.pass(fmt::format("{:.2f}", *now));
  out.warn(fmt::format("the load of the last minute is {:.1f} on {:.0f} CPUs: something else runs here", *now, cpus),
           "find it with `top`, and wait or end it");
}

void steal(const Node& node, const Cluster&, Findings& out) {
  const machine::Reading& since_start = node.facts["cpu/steal_since_start"];
  if (out.nothing_in(since_start, "/proc/stat", "/proc/stat does not tell it")) return;
  constexpr double much = 0.02;
  const double now = node.facts.number("cpu/steal").value_or(0),
               before = node.facts.number("cpu/steal_since_start").value_or(0);
  const std::string remedy = "ask for CPUs of your own (a dedicated host); measure when the host is idle";
  if (now > much) {
    out.warn(fmt::format("the hypervisor gives {} of the CPUs' time to other guests", percent(now, 0)), remedy);
  } else if (before > much) {
    out.info(fmt::format("since its start the node had to wait for CPUs {} of the time, now it does not",
                         percent(before, 0)),
             remedy);
  } else {
    out.pass("none");
  }
}

void swap(const Node& node, const Cluster&, Findings& out) {
  if (out.nothing_in(node.facts["memory/total_kb"], "the memory", "/proc does not tell the memory")) return;
  const double total = node.facts.number("memory/swap_kb").value_or(0);
  const double used = total - node.facts.number("memory/swap_free_kb").value_or(total);
  constexpr double little_kb = 64 * 1024;
  if (used <= little_kb) return out.pass("none in use");
  out.warn(fmt::format("{:.1f} GiB of memory are swapped out", used / (1 << 20)), "`swapoff -a`, after freeing memory");
}

void numa_balancing(const Node& node, const Cluster&, Findings& out) {
  const machine::Reading& reading = node.facts["memory/numa_balancing"];
  if (out.nothing_in(reading, "kernel.numa_balancing", "this kernel moves no pages between NUMA nodes")) return;
  if (node.facts.text("memory/numa_nodes") == "0") return out.skip("one NUMA node");
  if (reading.text == "0") return out.pass("off");
  out.warn("the kernel moves pages between NUMA nodes while programs run (numa_balancing is on)",
           "sysctl kernel.numa_balancing=0");
}

void quota(const Node& node, const Cluster&, Findings& out) {
  const machine::Reading& reading = node.facts["cpu/quota"];
  if (out.nothing_in(reading, "the control groups' CPU quota", "this kernel has no control groups")) return;
  const auto cpus = node.facts.number("cpu/quota");
  if (!cpus) return out.pass(reading.text);
  out.warn(fmt::format("a control group allows {:.1f} CPUs; beyond that every thread is stopped for a while", *cpus),
           "start the container without a CPU limit, or reserve whole CPUs");
}

void unfinished(const Node& node, const Cluster&, Findings& out) {
  if (node.facts.has("silent")) {
    return out.fail(node.facts.text("silent") + " gave no answer: nothing is known of what it would have told",
                    "see whether its process still runs, and what the kernel's log of its node says");
  }
  if (told_nothing(node.facts)) {
    return out.unknown("the node", why_nothing(node.facts),
                       "a node's files are its /proc and /sys: see that they are where doctor looks");
  }
  const std::string stage = node.facts.text("unfinished");
  if (stage.empty()) return out.pass("all was read in time");
  out.warn("not everything was told in time: " + stage,
           "a driver that hangs also hangs whatever uses it; look at the kernel's log");
}

}  // namespace

std::vector<Check> system_checks() {
  return {
      {"node.answers", "does every read of the kernel and the driver end in time", "all that the others read",
       docs::kernel, unfinished},
      {"cpu.governor", "are the CPUs allowed their full clock",
       "/sys/devices/system/cpu/*/cpufreq/scaling_governor, energy_performance_preference; no_turbo, boost, acpi_cppc",
       docs::cpufreq, governor},
      {"cpu.load", "does something else use the CPUs", "/proc/loadavg", docs::kernel, load},
      {"cpu.steal", "do other guests of the host take CPU time", "/proc/stat, of a guest twice", docs::kernel, steal},
      {"cpu.quota", "may the job use the CPUs it sees", "/sys/fs/cgroup/**/cpu.max; version 1: cpu.cfs_quota_us",
       docs::cgroup, quota},
      {"mem.swap", "is memory swapped out", "/proc/meminfo", docs::kernel, swap},
      {"mem.numa_balancing", "does the kernel move pages while programs run", "/proc/sys/kernel/numa_balancing",
       docs::sysctl_kernel, numa_balancing}};
}

}  // namespace harness::doctor
