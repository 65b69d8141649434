// The launcher's limits and bindings of each process; the processors, memory and kernel of the node.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "doctor/check.h"
#include "machine/cpus.h"

namespace harness::doctor {
namespace {

constexpr double gib = 1 << 30;

// CAP_IPC_LOCK: memory may be locked whatever the limit says.
bool may_lock_anything(const Facts& rank) {
  constexpr std::uint64_t ipc_lock = 1u << 14;
  const std::string& text = rank.text("bound/capabilities");
  return (number_in<std::uint64_t>(text, 16).value_or(0) & ipc_lock) != 0;
}

// The smallest limit of the node's ranks; says unknown where one does not tell, and gives nothing where none does.
// "unlimited" is the largest.
std::optional<double> smallest_limit(const Node& node, const std::string& name, const std::string& what,
                                     Findings& out) {
  std::optional<double> smallest;
  std::map<std::string, std::vector<std::string>> silent;  // ranks by the reason
  for (const Rank& rank : node.ranks) {
    const machine::Reading& reading = rank.facts[name];
    const auto limit = reading.text == "unlimited" ? std::optional(1e300) : rank.facts.number(name);
    if (limit) smallest = std::min(*limit, smallest.value_or(*limit));
    const bool is_absent = reading.access == machine::Access::absent;
    if (!limit) silent[is_absent ? "" : ": " + why_silent(reading)].push_back(fmt::format("{}", rank.rank));
  }
  if (node.ranks.empty()) out.unknown(what, "no rank told it");
  for (const auto& [why, ranks] : silent) {
    const bool all = ranks.size() == node.ranks.size();
    out.unknown(what, (all ? "no rank told it" : fmt::format("rank {} did not tell it", join_first(ranks, 3))) + why);
  }
  return smallest;
}

// The GPUs of its node that a rank may use, in the order of their addresses: all, unless it told that it may not.
std::vector<std::string> gpus_open_to(const Rank& rank, const std::vector<std::string>& gpus) {
  std::vector<std::string> open;
  for (const std::string& gpu : gpus) {
    if (rank.facts.text("gpu/" + gpu) != "no") open.push_back(gpu);
  }
  return open;
}

// The GPUs that any of its ranks may use.
std::vector<std::string> gpus_of_job(const Node& node, std::vector<std::string> gpus) {
  std::erase_if(gpus, [&](const std::string& gpu) {
    return !node.ranks.empty() &&
           std::ranges::all_of(node.ranks, [&](const Rank& rank) { return rank.facts.text("gpu/" + gpu) == "no"; });
  });
  return gpus;
}

// The GPU that a rank gets: by its number on the node, or by what CUDA_VISIBLE_DEVICES leaves it, which counts those
// that are open to it. "": not known.
std::string gpu_of(const Rank& rank, std::size_t local_rank, const std::vector<std::string>& gpus) {
  const std::vector<std::string> open = gpus_open_to(rank, gpus);
  std::size_t number = open.size() == 1 ? 0 : local_rank;
  const machine::Reading& visible = rank.facts["env/CUDA_VISIBLE_DEVICES"];
  if (visible.ok() && open.size() != 1) {
    const auto alone = number_in<std::size_t>(visible.text);
    if (!alone) return "";
    number = *alone;
  }
  return number < open.size() ? open[number] : "";
}

machine::CpuSet may_use(const Rank& rank) {
  const machine::CpuSet bound = machine::cpus_in(rank.facts.text("bound/cpus"));
  return bound | machine::cpus_in(rank.facts.text("bound/allowed"));
}

// The switch that is off has the remedy: each driver of the CPUs' clock has its own.
void judge_turbo(const Facts& facts, Findings& out) {
  const std::string evidence = "the CPUs may not raise their clock (turbo is off)";
  if (facts.number("cpu/no_turbo") == 1) {
    out.warn(evidence, "echo 0 > /sys/devices/system/cpu/intel_pstate/no_turbo, or the BIOS");
  } else if (facts.number("cpu/boost") == 0 && facts.text("cpu/boost_headroom") != "no") {
    out.warn(evidence, "echo 1 > /sys/devices/system/cpu/cpufreq/boost, or the BIOS");
  }
}

}  // namespace

void look::rank_gpus(const Node& node, const Cluster&, Findings& out) {
  const auto on_node = std::max(
      {node.facts.under("gpu").size(), node.facts.under("driver/gpu").size(), node.facts.under("nvml").size()});
  if (on_node == 0) return out.skip("no NVIDIA GPU");
  const std::vector<std::string> on_bus = gpus_of(node.facts);
  const auto gpus = static_cast<std::int64_t>(on_bus.empty() ? on_node : gpus_of_job(node, on_bus).size());
  const auto ranks = std::ssize(node.ranks);
  const std::string both = fmt::format("{} and {}{}", plural(ranks, "rank"), plural(gpus, "GPU"),
                                       std::cmp_less(gpus, on_bus.size()) ? " that the job may use" : "");
  if (gpus == 0) return out.warn(both, "ask the scheduler for GPUs (srun --gpus-per-node), or start no rank here");
  if (ranks == 1 && gpus > 1)
    return out.info(both + ": only one GPU is under load",
                    fmt::format("start a rank for each GPU: mpirun --map-by ppr:{}:node", gpus));
  if (ranks > gpus) return out.fail(both, fmt::format("start {} on this node, or repair it", plural(gpus, "rank")));
  out.pass(both);
}

void look::rank_memlock(const Node& node, const Cluster&, Findings& out) {
  if (!node.facts.any("hca")) return out.skip("no adapter for RDMA");
  const auto limit = smallest_limit(node, "limit/memlock", "the limit of locked memory", out);
  if (!limit) return;
  const bool free = std::ranges::all_of(node.ranks, [](const Rank& rank) { return may_lock_anything(rank.facts); });
  if (*limit > 1e299 || free) return out.conclude(true, "unlimited", "");
  const std::string remedy =
      "set `* - memlock unlimited` in /etc/security/limits.conf and LimitMEMLOCK=infinity of the launcher's daemon "
      "(slurmd, sshd); --ulimit memlock=-1 of a container";
  const std::string evidence =
      fmt::format("a rank may lock {} of memory; RDMA locks all of its buffers", show_bytes(*limit));
  out.add(*limit < gib ? Verdict::fail : Verdict::warn, evidence, remedy);
}

void look::rank_nofile(const Node& node, const Cluster&, Findings& out) {
  const auto limit = smallest_limit(node, "limit/nofile", "the limit of open files", out);
  if (!limit) return;
  constexpr double enough = 65536;
  if (*limit >= enough) return out.conclude(true, fmt::format("{:.0f}", std::min(*limit, 1e12)), "");
  out.add(node.facts.any("gpu") ? Verdict::warn : Verdict::info,
          fmt::format("a rank may open {:.0f} files and sockets; large jobs need {:.0f}", *limit, enough),
          "set `* - nofile 1048576` in /etc/security/limits.conf, or `ulimit -n`");
}

void look::rank_shm(const Node& node, const Cluster&, Findings& out) {
  const auto size = smallest_limit(node, "shm/bytes", "the size of /dev/shm", out);
  if (!size) return;
  constexpr double enough = 1e9;
  if (*size >= enough) return out.conclude(true, show_bytes(*size), "");
  out.add(node.facts.any("gpu") ? Verdict::warn : Verdict::info,
          fmt::format("/dev/shm has {}; NCCL asks for 1 GB, and MPI uses it too", show_bytes(*size)),
          "start the container with --shm-size=1g or more, or with the host's /dev/shm");
}

// Sweeps bind their workers themselves, to all that the job may use. So what no rank may use matters to them; what a
// rank is bound to, to other programs.
void look::rank_near_gpu(const Node& node, const Cluster&, Findings& out) {
  const Facts& facts = node.facts;
  const std::vector<std::string> gpus = gpus_of(facts);
  if (gpus.empty()) return out.skip("no NVIDIA GPU in /sys");
  machine::CpuSet allowed;
  for (const Rank& rank : node.ranks) {
    const machine::Reading& reading = rank.facts["bound/cpus"];
    if (machine::cpus_in(reading.text).none()) return out.unknown("the CPUs of a rank", why_silent(reading));
    allowed |= may_use(rank);
  }
  std::vector<std::string> out_of_reach;
  for (const std::string& gpu : gpus_of_job(node, gpus)) {
    const machine::Reading& near = facts["gpu/" + gpu + "/cpus"];
    const machine::CpuSet cpus = machine::cpus_in(near.text);
    if (cpus.none()) return out.unknown("the CPUs near GPU " + gpu, why_silent(near));
    if ((cpus & allowed).none()) out_of_reach.push_back(gpu);
  }
  if (!out_of_reach.empty()) {
    out.warn(fmt::format("the job may use none of the CPUs near {}: {}", plural(std::ssize(out_of_reach), "GPU"),
                         join_first(out_of_reach, 3)),
             "give the job the CPUs of all NUMA nodes that its GPUs are near (--cpuset-cpus, srun --cpus-per-task)");
  }
  std::vector<std::string> far;
  const std::vector<Rank>& ranks = node.ranks;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::string gpu = gpu_of(ranks[i], i, gpus);
    const bool reached = !gpu.empty() && std::ranges::find(out_of_reach, gpu) == out_of_reach.end();
    if (!reached || ranks.size() == 1) continue;  // one rank for all GPUs of the node
    const machine::CpuSet bound = machine::cpus_in(ranks[i].facts.text("bound/cpus")),
                          cpus = machine::cpus_in(facts.text("gpu/" + gpu + "/cpus"));
    if (cpus.any() && (bound & cpus).none()) far.push_back(fmt::format("{} (GPU {})", ranks[i].rank, gpu));
  }
  if (!far.empty()) {
    out.info(fmt::format("ranks bound to CPUs that are not near their GPU: {}; sweeps bind their workers themselves, "
                         "other programs would be slow",
                         join_first(far, 3)),
             "mpirun --map-by ppr:N:numa --bind-to numa, or srun --gpu-bind=closest with --cpu-bind");
  }
  if (out.empty()) out.pass("near");
}

void look::rank_memory_policy(const Node& node, const Cluster&, Findings& out) {
  if (node.ranks.empty()) return out.skip("no rank");
  const machine::Reading& reading = node.ranks.front().facts["bound/memory_policy"];
  if (reading.ok()) return out.pass(reading.text);
  if (reading.access == machine::Access::absent) return out.skip("only the running machine tells");
  if (reading.why != "operation not permitted") return out.unknown("where the kernel takes memory from", reading.why);
  out.add(has_gpus(node.facts) ? Verdict::warn : Verdict::info,
          "the kernel does not let a process choose the NUMA node of its memory: NCCL takes its host buffers from "
          "/dev/shm, and host_binding cannot choose",
          "start the container with --cap-add SYS_NICE, or a seccomp profile that allows set_mempolicy");
}

void look::node_answers(const Node& node, const Cluster&, Findings& out) {
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

void look::cpu_governor(const Node& node, const Cluster&, Findings& out) {
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

void look::cpu_load(const Node& node, const Cluster&, Findings& out) {
  const machine::Reading& reading = node.facts["cpu/load"];
  if (out.nothing_in(reading, "the load", "/proc does not tell the load")) return;
  const auto now = node.facts.number("cpu/load");
  if (!now) return out.unknown("the load", "/proc/loadavg is no number");
  const auto cpus = static_cast<double>(machine::cpus_in(node.facts.text("cpu/online")).count());
  constexpr double small_share = 0.05;
  if (*now <= std::max(1.0, small_share * cpus)) return out.pass(fmt::format("{:.2f}", *now));
  if (cpus < 1) return out.unknown("how many CPUs there are", why_silent(node.facts["cpu/online"]));
  out.warn(fmt::format("the load of the last minute is {:.1f} on {:.0f} CPUs: something else runs here", *now, cpus),
           "find it with `top`, and wait or end it");
}

void look::cpu_steal(const Node& node, const Cluster&, Findings& out) {
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

// A quota of all CPUs that the ranks may run on stops nobody, as Kubernetes sets it on a pod of a whole node.
void look::cpu_quota(const Node& node, const Cluster&, Findings& out) {
  if (out.nothing_in(node.facts["cpu/quota"], "the quota of CPU time", "the kernel has no control groups")) return;
  if (node.facts.text("cpu/quota") == "none") return out.pass("none");
  const auto quota = node.facts.number("cpu/quota");
  if (!quota) return out.unknown("the quota of CPU time", "it is no number");
  const machine::CpuSet all = machine::cpus_in(node.facts.text("cpu/online"));
  machine::CpuSet usable;
  for (const Rank& rank : node.ranks) {
    const machine::CpuSet own = may_use(rank);
    usable |= own.any() ? own : all;
  }
  if (node.ranks.empty()) usable = all;
  if (usable.none()) return out.unknown("how many CPUs the job may use", "neither its ranks nor /sys tell it");
  const auto cpus = static_cast<double>(usable.count());
  if (*quota >= cpus) {
    const machine::Reading& others = node.facts["cpu/other_quotas"];
    if (!others.why.empty()) return out.unknown("the quota of CPU time", others.why);
    return out.pass(fmt::format("{:.2f} CPUs, and the job may run on {:.0f}", *quota, cpus));
  }
  out.warn(fmt::format("a control group allows {:.2f} CPUs of the {:.0f} that the job may run on; beyond that every "
                       "thread is stopped for a while",
                       *quota, cpus),
           "start the container without a CPU limit, or reserve whole CPUs");
}

void look::mem_swap(const Node& node, const Cluster&, Findings& out) {
  if (out.nothing_in(node.facts["memory/total_kb"], "the memory", "/proc does not tell the memory")) return;
  const auto total = node.facts.number("memory/swap_kb"), free = node.facts.number("memory/swap_free_kb");
  if (!total || !free) return out.unknown("how much memory is swapped out", "/proc/meminfo does not tell it");
  const double used = *total - *free;
  constexpr double little_kb = 64 * 1024;
  if (used <= little_kb) return out.pass("none in use");
  out.warn(fmt::format("{:.1f} GiB of memory are swapped out", used / (1 << 20)), "`swapoff -a`, after freeing memory");
}

}  // namespace harness::doctor
