// The processors, the memory and the kernel of a node.
#include <algorithm>
#include <cmath>
#include <set>

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

void offline(const Node& node, const Cluster&, Findings& out) {
  const machine::Reading &online = node.facts["cpu/online"], &present = node.facts["cpu/present"];
  if (out.nothing_in(online, "the list of CPUs", "/sys does not list the CPUs")) return;
  if (out.nothing_in(present, "the list of CPUs", "/sys does not list the CPUs")) return;
  if (online.text == present.text) return out.pass(online.text);
  out.info(fmt::format("of the CPUs {}, only {} are on", present.text, online.text));
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

void zone_reclaim(const Node& node, const Cluster&, Findings& out) {
  const machine::Reading& reading = node.facts["memory/zone_reclaim"];
  if (out.nothing_in(reading, "vm.zone_reclaim_mode", "this kernel has no zone_reclaim_mode")) return;
  if (reading.text == "0") return out.pass("off");
  out.info("vm.zone_reclaim_mode is " + reading.text + ": files are dropped from memory before a far NUMA node is used",
           "sysctl vm.zone_reclaim_mode=0");
}

void quota(const Node& node, const Cluster&, Findings& out) {
  const machine::Reading& reading = node.facts["cpu/quota"];
  if (out.nothing_in(reading, "the control groups' CPU quota", "this kernel has no control groups")) return;
  const auto cpus = node.facts.number("cpu/quota");
  if (!cpus) return out.pass(reading.text);
  out.warn(fmt::format("a control group allows {:.1f} CPUs; beyond that every thread is stopped for a while", *cpus),
           "start the container without a CPU limit, or reserve whole CPUs");
}

void clock_source(const Node& node, const Cluster&, Findings& out) {
  const machine::Reading& reading = node.facts["clock/source"];
  if (out.nothing_in(reading, "the clock's source", "/sys does not tell the clock's source")) return;
  static const std::set<std::string> slow{"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"};
  if (!slow.contains(reading.text)) return out.pass(reading.text);
  out.warn("the kernel's clock is " + reading.text + ": each look at it takes a microsecond or more",
           "find in the kernel's log why it left tsc; boot with clocksource=tsc");
}

void huge_pages(const Node& node, const Cluster&, Findings& out) {
  const machine::Reading& reading = node.facts["memory/huge_pages"];
  if (out.nothing_in(reading, "transparent huge pages", "this kernel has no transparent huge pages")) return;
  if (reading.text != "never") return out.pass(reading.text);
  out.info("transparent huge pages are off: large buffers of the host take more entries of the processor's tables",
           "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
}

// Nothing that is measured compares the clocks of nodes; who reads logs of several does.
void synchronised(const Node& node, const Cluster&, Findings& out) {
  const machine::Reading& reading = node.facts["clock/synchronised"];
  if (out.nothing_in(reading, "whether the clock is synchronised", "only the running machine tells")) return;
  if (reading.text == "yes") return out.pass("by the kernel's own estimate");
  if (is_virtual(node.facts) || is_container(node.facts))
    return out.skip("the kernel says no, but the host may keep the clock");
  out.warn("nothing keeps this node's clock: times in its logs are not those of others", "start chronyd or ntpd");
}

// Reads the same logs beside each other, or asks when a node last did something, who needs it.
void clocks_agree(const Node& node, const Cluster& cluster, Findings& out) {
  const machine::Reading& reading = node.facts["clock/offset_s"];
  if (out.nothing_in(reading, "the clock", "one node, or none that runs")) return;
  const double offset_s = node.facts.signed_number("clock/offset_s").value_or(0) - cluster.clock_offset_s,
               uncertainty_s = node.facts.number("clock/offset_uncertainty_s").value_or(0);
  constexpr double much_s = 0.1;
  const std::string numbers = fmt::format("{} (+- {})", show_seconds(std::abs(offset_s)), show_seconds(uncertainty_s));
  if (std::abs(offset_s) - uncertainty_s > much_s) {
    out.warn(fmt::format("its clock is {} {} the others': logs of several nodes do not fit together", numbers,
                         offset_s > 0 ? "ahead of" : "behind"),
             "let chronyd or ntpd of all nodes follow the same clock");
  } else if (uncertainty_s > much_s) {
    out.unknown("whether its clock agrees with the others'", "nodes answered too slowly: " + numbers);
  } else {
    out.pass("by " + numbers);
  }
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
      {"cpu.offline", "are all CPUs on", "/sys/devices/system/cpu/online, present", docs::kernel, offline},
      {"cpu.load", "does something else use the CPUs", "/proc/loadavg", docs::kernel, load},
      {"cpu.steal", "do other guests of the host take CPU time", "/proc/stat, of a guest twice", docs::kernel, steal},
      {"cpu.quota", "may the job use the CPUs it sees", "/sys/fs/cgroup/**/cpu.max; version 1: cpu.cfs_quota_us",
       docs::cgroup, quota},
      {"mem.swap", "is memory swapped out", "/proc/meminfo", docs::kernel, swap},
      {"mem.numa_balancing", "does the kernel move pages while programs run", "/proc/sys/kernel/numa_balancing",
       docs::sysctl_kernel, numa_balancing},
      {"mem.zone_reclaim", "is memory of all NUMA nodes used alike", "/proc/sys/vm/zone_reclaim_mode", docs::sysctl_vm,
       zone_reclaim},
      {"mem.huge_pages", "may large buffers have large pages", "/sys/kernel/mm/transparent_hugepage/enabled",
       docs::kernel, huge_pages},
      {"clock.source", "is the kernel's clock quick to read",
       "/sys/devices/system/clocksource/clocksource0/current_clocksource", docs::kernel, clock_source},
      {"clock.offset", "do all nodes have the same time, within 0.1 s", "the time of each node, asked five times",
       docs::adjtimex, clocks_agree},
      {"clock.sync", "does something keep the clock right", "adjtimex()", docs::adjtimex, synchronised}};
}

}  // namespace harness::doctor
