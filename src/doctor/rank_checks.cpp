// What the launcher gives each process of a node: limits, CPUs, its share of the GPUs.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "doctor/check.h"
#include "doctor/docs.h"
#include "machine/cpus.h"

namespace harness::doctor {
namespace {

constexpr double gib = 1 << 30;

// CAP_IPC_LOCK: memory may be locked whatever the limit says.
bool may_lock_anything(const Facts& rank) {
  constexpr std::uint64_t ipc_lock = 1u << 14;
  const std::string& text = rank.text("bound/capabilities");
  std::uint64_t bits = 0;
  std::from_chars(text.data(), text.data() + text.size(), bits, 16);
  return (bits & ipc_lock) != 0;
}

// The smallest limit of the node's ranks; nothing where none tells. "unlimited" is the largest.
std::optional<double> smallest_limit(const Node& node, const std::string& name) {
  std::optional<double> smallest;
  for (const Rank& rank : node.ranks) {
    if (!rank.facts.has(name)) continue;
    const double limit = rank.facts.number(name).value_or(1e300);
    smallest = std::min(limit, smallest.value_or(limit));
  }
  return smallest;
}

void memlock(const Node& node, const Cluster&, Findings& out) {
  if (!node.facts.any("hca")) return out.skip("no adapter for RDMA");
  const auto limit = smallest_limit(node, "limit/memlock");
  if (!limit) return out.unknown("the limit of locked memory", "no rank told it");
  const bool free = std::ranges::all_of(node.ranks, [](const Rank& rank) { return may_lock_anything(rank.facts); });
  if (*limit > 1e299 || free) return out.pass("unlimited");
  const std::string remedy =
      "set `* - memlock unlimited` in /etc/security/limits.conf and LimitMEMLOCK=infinity of the launcher's daemon "
      "(slurmd, sshd); --ulimit memlock=-1 of a container";
  const std::string evidence =
      fmt::format("a rank may lock {} of memory; RDMA locks all of its buffers", show_bytes(*limit));
  out.add(*limit < gib ? Verdict::fail : Verdict::warn, evidence, remedy);
}

void open_files(const Node& node, const Cluster&, Findings& out) {
  const auto limit = smallest_limit(node, "limit/nofile");
  if (!limit) return out.unknown("the limit of open files", "no rank told it");
  constexpr double enough = 65536;
  if (*limit >= enough) return out.pass(fmt::format("{:.0f}", std::min(*limit, 1e12)));
  out.add(node.facts.any("gpu") ? Verdict::warn : Verdict::info,
          fmt::format("a rank may open {:.0f} files and sockets; large jobs need {:.0f}", *limit, enough),
          "set `* - nofile 1048576` in /etc/security/limits.conf, or `ulimit -n`");
}

void shared_memory(const Node& node, const Cluster&, Findings& out) {
  const auto size = smallest_limit(node, "shm/bytes");
  if (!size) return out.unknown("/dev/shm", "no rank told its size");
  constexpr double enough = 1e9;
  if (*size >= enough) return out.pass(show_bytes(*size));
  out.add(node.facts.any("gpu") ? Verdict::warn : Verdict::info,
          fmt::format("/dev/shm has {}; NCCL asks for 1 GB, and MPI uses it too", show_bytes(*size)),
          "start the container with --shm-size=1g or more, or with the host's /dev/shm");
}

void binding(const Node& node, const Cluster&, Findings& out) {
  std::map<std::size_t, int> ranks_with;  // by number of CPUs
  for (const Rank& rank : node.ranks) {
    const machine::Reading& reading = rank.facts["bound/cpus"];
    if (reading.access == machine::Access::unreadable) return out.unknown("the CPUs of a rank", reading.why);
    if (reading.ok()) ++ranks_with[machine::cpus_in(reading.text).count()];
  }
  if (ranks_with.empty()) return out.unknown("the CPUs of the ranks", "no rank told them");
  const auto [fewest, ranks] = *ranks_with.begin();
  const std::size_t all = machine::cpus_in(node.facts.text("cpu/online")).count();
  constexpr std::size_t enough = 4;
  if (fewest >= enough || fewest == all) return out.pass(plural(static_cast<std::int64_t>(fewest), "CPU"));
  out.info(fmt::format("{} bound to {}: sweeps spread their workers over the node, but the threads of other programs "
                       "would share it",
                       ranks == 1 ? "a rank is" : plural(ranks, "rank") + " are",
                       plural(static_cast<std::int64_t>(fewest), "CPU")),
           "mpirun --bind-to none, or --map-by with at least four CPUs for each rank");
}

void ranks_and_gpus(const Node& node, const Cluster&, Findings& out) {
  const auto gpus = static_cast<std::int64_t>(std::max(
      {node.facts.under("gpu").size(), node.facts.under("driver/gpu").size(), node.facts.under("nvml").size()}));
  const auto ranks = std::ssize(node.ranks);
  if (gpus == 0) return out.skip("no NVIDIA GPU");
  const std::string both = fmt::format("{} and {}", plural(ranks, "rank"), plural(gpus, "GPU"));
  if (ranks > gpus) return out.fail(both, fmt::format("start {} on this node, or repair it", plural(gpus, "rank")));
  out.pass(both);
}

}  // namespace

std::vector<Check> rank_checks() {
  return {{"rank.gpus", "has each rank a GPU of its own", "the job, /sys/bus/pci/devices, /proc/driver/nvidia/gpus",
           "docs/running.md", ranks_and_gpus},
          {"rank.memlock", "may RDMA lock its buffers", "getrlimit(RLIMIT_MEMLOCK) of each rank", docs::nccl, memlock},
          {"rank.nofile", "may a rank open as many sockets as a large job needs", "getrlimit(RLIMIT_NOFILE)",
           docs::nccl, open_files},
          {"rank.shm", "is there shared memory enough", "statvfs(/dev/shm)", docs::nccl, shared_memory},
          {"rank.binding", "how many CPUs has a rank", "/proc/self/status of each rank", docs::mpirun, binding}};
}

}  // namespace harness::doctor
