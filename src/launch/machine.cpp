#include "launch/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "launch/kernel_text.h"

namespace harness::launch {
namespace {

// cpu_set_t with room for large machines: the static type ends at 1024 CPUs.
using Mask = std::array<unsigned long, cpu_capacity / (8 * sizeof(unsigned long))>;
constexpr std::size_t bits_per_word = 8 * sizeof(unsigned long);

std::string first_line(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

// The value after "key :" in the style of /proc/cpuinfo and /proc/meminfo.
std::string value_of(const std::string& text, const std::string& key) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::size_t start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

// Calls look(directory) for every directory of the process's group and its parents, for a version 1 controller's own
// hierarchy and for version 2's. Inside a container the path may name what only the host sees; then the mount's root is
// all there is.
template <class Look>
void each_group(const std::string& cgroup_text, const std::filesystem::path& mount, const std::string& controller,
                Look&& look) {
  std::istringstream in(cgroup_text);
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    std::filesystem::path root = mount;
    if (controllers == ",,") {
      if (std::filesystem::exists(mount / "unified")) root = mount / "unified";
    } else if (controllers.find("," + controller + ",") != std::string::npos) {
      root = mount / controllers.substr(1, controllers.size() - 2);
    } else {
      continue;
    }
    std::filesystem::path relative = std::filesystem::path(line.substr(second + 1)).relative_path();
    for (;;) {
      look(root / relative);
      if (relative.empty()) break;
      relative = relative.parent_path();
    }
  }
}

double number(const std::string& text) {
  std::istringstream in(text);
  double value = 0;
  return in >> value ? value : 0;
}

void keep_smaller(double& smallest, double value) {
  if (value > 0 && (smallest == 0 || value < smallest)) smallest = value;
}

}  // namespace

CpuSet bound_cpus() {
  Mask mask{};
  CpuSet cpus;
  if (::sched_getaffinity(0, sizeof mask, reinterpret_cast<cpu_set_t*>(mask.data())) != 0) return cpus;
  for (std::size_t i = 0; i < cpu_capacity; ++i) cpus[i] = (mask[i / bits_per_word] >> (i % bits_per_word)) & 1ul;
  return cpus;
}

// Asked for every CPU there is, the kernel gives all that the process may have.
CpuSet allowed_cpus() {
  Mask before{};
  if (::sched_getaffinity(0, sizeof before, reinterpret_cast<cpu_set_t*>(before.data())) != 0) return {};
  Mask all{};
  all.fill(~0ul);
  ::sched_setaffinity(0, sizeof all, reinterpret_cast<const cpu_set_t*>(all.data()));
  const CpuSet allowed = bound_cpus();
  ::sched_setaffinity(0, sizeof before, reinterpret_cast<const cpu_set_t*>(before.data()));
  return allowed;
}

void bind_to(const CpuSet& cpus) {
  Mask mask{};
  for (std::size_t i = 0; i < cpu_capacity; ++i) {
    if (cpus[i]) mask[i / bits_per_word] |= 1ul << (i % bits_per_word);
  }
  ::sched_setaffinity(0, sizeof mask, reinterpret_cast<const cpu_set_t*>(mask.data()));
}

std::vector<std::vector<int>> cores_of(const CpuSet& cpus) {
  std::map<std::string, std::size_t> index;  // by the list of siblings
  std::vector<std::vector<int>> cores;
  for (std::size_t i = 0; i < cpu_capacity; ++i) {
    if (!cpus[i]) continue;
    std::string siblings =
        first_line("/sys/devices/system/cpu/cpu" + std::to_string(i) + "/topology/thread_siblings_list");
    if (siblings.empty()) siblings = "cpu " + std::to_string(i);
    const auto [at, is_new] = index.try_emplace(siblings, cores.size());
    if (is_new) cores.emplace_back();
    cores[at->second].push_back(static_cast<int>(i));
  }
  return cores;
}

int limited_by_quota(int cores) {
  const double quota = smallest_cpu_quota(kernel_text("/proc/self/cgroup"), "/sys/fs/cgroup");
  if (quota <= 0) return cores;
  return std::clamp(static_cast<int>(std::ceil(quota)), 1, cores);
}

double memory_bytes() {
  double bytes = number(value_of(kernel_text("/proc/meminfo"), "MemTotal")) * 1024;
  keep_smaller(bytes, smallest_memory_limit(kernel_text("/proc/self/cgroup"), "/sys/fs/cgroup"));
  return bytes;
}

std::string cpu_model() {
  const std::string text = kernel_text("/proc/cpuinfo");
  if (std::string name = value_of(text, "model name"); !name.empty()) return name;
  const std::string implementer = value_of(text, "CPU implementer");  // 64-bit Arm has numbers only
  if (implementer.empty()) return "unknown CPU";
  return "Arm implementer " + implementer + " part " + value_of(text, "CPU part");
}

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

double cpu_seconds(const rusage& used) {
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

double smallest_memory_limit(const std::string& cgroup_text, const std::filesystem::path& mount) {
  double smallest = 0;
  each_group(cgroup_text, mount, "memory", [&](const std::filesystem::path& at) {
    keep_smaller(smallest, number(first_line(at / "memory.max")));  // "max" is no number: no limit
    keep_smaller(smallest, number(first_line(at / "memory.limit_in_bytes")));
  });
  return smallest;
}

double smallest_cpu_quota(const std::string& cgroup_text, const std::filesystem::path& mount) {
  double smallest = 0;
  each_group(cgroup_text, mount, "cpu", [&](const std::filesystem::path& at) {
    std::istringstream v2(first_line(at / "cpu.max"));
    double quota = 0;
    double period = 0;
    if (v2 >> quota >> period && period > 0) keep_smaller(smallest, quota / period);
    const double v1_period = number(first_line(at / "cpu.cfs_period_us"));
    if (v1_period > 0) keep_smaller(smallest, number(first_line(at / "cpu.cfs_quota_us")) / v1_period);
  });
  return smallest;
}

}  // namespace harness::launch
