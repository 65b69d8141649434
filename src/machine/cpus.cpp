#include "machine/cpus.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "base/text.h"

namespace harness::machine {
namespace {

// cpu_set_t with room for large machines: the static type ends at 1024 CPUs.
using Mask = std::array<unsigned long, cpu_capacity / (8 * sizeof(unsigned long))>;
constexpr std::size_t bits_per_word = 8 * sizeof(unsigned long);

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

constexpr std::size_t first_cpus_bytes = 64 << 10;  // of /proc/cpuinfo: all CPUs of a node have the same name
constexpr std::size_t all_cpus_bytes = 16 << 20;    // of /proc/stat: a line for each CPU, and all interrupts in one

const std::string mount = "sys/fs/cgroup";

// Returns the folders where the hierarchy of a line of /proc/self/cgroup may be mounted: version 2 ("0::/path") at the
// top or beside version 1; a controller of version 1 ("4:cpu,cpuacct:/path") under the joint name or its own.
std::vector<std::string> mounts_of(std::string_view controllers, const std::string& controller) {
  if (controllers.empty()) return {mount, mount + "/unified"};
  const std::vector<std::string_view> names = split(controllers, ',');
  if (std::ranges::find(names, controller) == names.end()) return {};
  if (names.size() == 1) return {mount + "/" + controller};
  return {mount + "/" + std::string(controllers), mount + "/" + controller};
}

void keep_smaller(double& smallest, double value) {
  if (value > 0 && (smallest == 0 || value < smallest)) smallest = value;
}

// Returns the smallest nonzero look(folder) over the process's group and its ancestors. Inside a container the path may
// exist on the host alone; then only the mount's root is visible.
template <class Look>
GroupLimit smallest(const Tree& tree, const std::string& controller, Look&& look) {
  const Reading groups = tree.bytes("proc/self/cgroup");
  GroupLimit limit{groups.access, 0, groups.why};
  if (groups.ok() && !tree.exists(mount)) limit = {Access::unreadable, 0, fmt::format("there is no /{}", mount)};
  std::string_view text = groups.text;
  while (!text.empty()) {
    Cursor line{take_line(text)};
    if (!line.after(":")) continue;
    const std::string_view controllers = line.until(":");
    if (!line.literal(":")) continue;
    for (const std::string& place : mounts_of(controllers, controller)) {
      std::filesystem::path group = std::filesystem::path(line.rest).relative_path();
      for (int depth = 0; depth < 64; ++depth) {  // deeper than control groups may be nested
        keep_smaller(limit.value, look((place / group).string()));
        if (group.empty()) break;
        group = group.parent_path();
      }
    }
  }
  return limit;
}

}  // namespace

CpuSet bound_cpus() {
  Mask mask{};
  CpuSet cpus;
  if (::sched_getaffinity(0, sizeof mask, reinterpret_cast<cpu_set_t*>(mask.data())) != 0) return cpus;
  for (std::size_t i = 0; i < cpu_capacity; ++i) cpus[i] = (mask[i / bits_per_word] >> (i % bits_per_word)) & 1ul;
  return cpus;
}

// A request for every CPU makes the kernel grant all that the process may use.
CpuSet allowed_cpus() {
  const CpuSet before = bound_cpus();
  if (before.none()) return before;
  bind_to(CpuSet().set());
  const CpuSet allowed = bound_cpus();
  bind_to(before);
  return allowed;
}

void bind_to(const CpuSet& cpus) {
  Mask mask{};
  for (std::size_t i = 0; i < cpu_capacity; ++i) {
    if (cpus[i]) mask[i / bits_per_word] |= 1ul << (i % bits_per_word);
  }
  ::sched_setaffinity(0, sizeof mask, reinterpret_cast<const cpu_set_t*>(mask.data()));
}

std::vector<std::vector<int>> cores_of(const CpuSet& cpus, const std::filesystem::path& root) {
  std::map<std::string, std::size_t> index;  // by the list of siblings
  std::vector<std::vector<int>> cores;
  const Tree tree(root);
  for (std::size_t i = 0; i < cpu_capacity; ++i) {
    if (!cpus[i]) continue;
    std::string siblings = tree.line(fmt::format("sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", i)).text;
    if (siblings.empty()) siblings = "cpu " + std::to_string(i);
    const auto [at, is_new] = index.try_emplace(siblings, cores.size());
    if (is_new) cores.emplace_back();
    cores[at->second].push_back(static_cast<int>(i));
  }
  return cores;
}

CpuSet cpus_in(std::string_view list) {
  CpuSet cpus;
  Cursor cursor{list};
  for (std::size_t first = 0; cursor.integer(first);) {
    std::size_t last = first;
    if (cursor.literal("-")) cursor.integer(last);
    for (std::size_t cpu = first; cpu <= last && cpu < cpu_capacity; ++cpu) cpus.set(cpu);
    if (!cursor.literal(",")) break;
  }
  return cpus;
}

std::string list_of(const CpuSet& cpus) {
  std::string list;
  for (std::size_t first = 0; first < cpu_capacity; ++first) {
    if (!cpus[first]) continue;
    std::size_t last = first;
    while (last + 1 < cpu_capacity && cpus[last + 1]) ++last;
    if (!list.empty()) list += ',';
    list += first == last ? std::to_string(first) : fmt::format("{}-{}", first, last);
    first = last;
  }
  return list;
}

std::string cpu_model(const std::filesystem::path& root) {
  const std::string cpuinfo = Tree(root).head("proc/cpuinfo", first_cpus_bytes).text;
  if (std::string name = value_of(cpuinfo, "model name"); !name.empty()) return name;
  const std::string implementer = value_of(cpuinfo, "CPU implementer");  // 64-bit Arm has numbers only
  if (implementer.empty()) return "unknown CPU";
  return "Arm implementer " + implementer + " part " + value_of(cpuinfo, "CPU part");
}

CpuTimes cpu_times_now(const CpuSet& cpus, const std::filesystem::path& root) {
  // user nice system idle iowait irq softirq steal; what follows (guest) is part of user and nice.
  constexpr std::size_t idle = 3, iowait = 4, steal = 7, columns = 8;
  const auto ticks_per_s = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const std::string text = Tree(root, {.file_bytes = all_cpus_bytes}).bytes("proc/stat").text;
  std::string_view proc_stat = text;
  CpuTimes times;
  std::size_t found = 0;
  while (!proc_stat.empty()) {
    std::string_view line = take_line(proc_stat);
    const std::string_view name = take_word(line);  // "cpu12"; "cpu" is the sum of all
    const std::optional<double> cpu = name.starts_with("cpu") ? number(name.substr(3)) : std::nullopt;
    if (!cpu || *cpu >= static_cast<double>(cpus.size()) || !cpus[static_cast<std::size_t>(*cpu)]) continue;
    ++found;
    for (std::size_t column = 0; column < columns; ++column) {
      const double seconds = number(take_word(line)).value_or(nan) / ticks_per_s;
      times.all_s += seconds;
      if (column == steal) {
        times.steal_s += seconds;
      } else if (column != idle && column != iowait) {
        times.busy_s += seconds;
      }
    }
  }
  if (found == 0 || found != cpus.count()) return {nan, nan, nan};
  return times;
}

double busy_uncertainty_s(int cpus, double wall_s) {
  // Per CPU, n = wall / tick draws with p = 1/2 have a standard deviation of sqrt(n) / 2 ticks. The kernel's own ticks
  // are as long as those of the file, or shorter.
  return std::sqrt(cpus * wall_s / static_cast<double>(::sysconf(_SC_CLK_TCK)));
}

double cpu_seconds(const rusage& used) {
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

GroupLimit cpu_quota(const Tree& tree) {
  // Times in microseconds: "150000 100000" or "max 100000" in version 2, -1 for none in version 1.
  const auto cpus = [](std::string_view quota, std::string_view period) {
    const double share = number(quota).value_or(0) / number(period).value_or(nan);
    return std::isfinite(share) ? share : 0;
  };
  return smallest(tree, "cpu", [&](const std::string& group) {
    const std::string both = tree.line(group + "/cpu.max").text;
    std::string_view rest = both;
    const std::string_view quota = take_word(rest);
    if (!quota.empty()) return cpus(quota, trim(rest));
    return cpus(tree.line(group + "/cpu.cfs_quota_us").text, tree.line(group + "/cpu.cfs_period_us").text);
  });
}

GroupLimit memory_limit(const Tree& tree) {
  return smallest(tree, "memory", [&](const std::string& group) {
    const Reading limit = tree.line(group + "/memory.max");
    return number(limit.ok() ? limit.text : tree.line(group + "/memory.limit_in_bytes").text).value_or(0);
  });
}

int limited_by_quota(int cores, const std::filesystem::path& root) {
  const double quota = cpu_quota(Tree(root)).value;
  if (quota <= 0) return cores;
  return std::clamp(static_cast<int>(std::ceil(std::min(quota, 1e6))), 1, cores);
}

double memory_bytes(const std::filesystem::path& root) {
  const Tree tree(root);
  const std::string total = value_of(tree.bytes("proc/meminfo").text, "MemTotal");
  std::string_view rest = total;
  double bytes = number(take_word(rest)).value_or(0) * 1024;
  keep_smaller(bytes, memory_limit(tree).value);
  return bytes;
}

CpuSet cpus_near(const std::string& pci_bus_id, const std::filesystem::path& root) {
  return cpus_in(Tree(root).line("sys/bus/pci/devices/" + lower(pci_bus_id) + "/local_cpulist").text);
}

}  // namespace harness::machine
