#include "machine/cgroups.h"

#include <algorithm>
#include <cmath>

#include "machine/proc.h"

namespace harness::machine {
namespace {

// Calls look(directory) for every directory of the process's group and its parents, for a version 1 controller's own
// hierarchy and for version 2's. Inside a container the path may name what only the host sees; then the mount's root is
// all there is.
template <class Look>
void each_group(std::string_view cgroup_text, const std::filesystem::path& mount, const std::string& controller,
                Look&& look) {
  while (!cgroup_text.empty()) {
    const std::string line(take_line(cgroup_text));
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

// "max" is no number and no limit.
void keep_smaller(double& smallest, std::optional<double> value) {
  if (value > 0 && (smallest == 0 || value < smallest)) smallest = *value;
}

}  // namespace

double smallest_memory_limit(const std::string& cgroup_text, const std::filesystem::path& mount) {
  double smallest = 0;
  each_group(cgroup_text, mount, "memory", [&](const std::filesystem::path& at) {
    keep_smaller(smallest, number_in(at / "memory.max"));
    keep_smaller(smallest, number_in(at / "memory.limit_in_bytes"));
  });
  return smallest;
}

double smallest_cpu_quota(const std::string& cgroup_text, const std::filesystem::path& mount) {
  double smallest = 0;
  each_group(cgroup_text, mount, "cpu", [&](const std::filesystem::path& at) {
    const std::string line = first_line(at / "cpu.max");
    std::string_view rest = line;
    const std::optional<double> quota = number(take_word(rest)), period = number(take_word(rest));
    if (quota && period > 0) keep_smaller(smallest, *quota / *period);
    const auto old_quota = number_in(at / "cpu.cfs_quota_us"), old_period = number_in(at / "cpu.cfs_period_us");
    if (old_quota && old_period > 0) keep_smaller(smallest, *old_quota / *old_period);
  });
  return smallest;
}

int limited_by_quota(int cores, const std::filesystem::path& root) {
  const double quota = smallest_cpu_quota(kernel_text(root / "proc/self/cgroup"), root / "sys/fs/cgroup");
  if (quota <= 0) return cores;
  return std::clamp(static_cast<int>(std::ceil(quota)), 1, cores);
}

double memory_bytes(const std::filesystem::path& root) {
  const std::string total = value_of(kernel_text(root / "proc/meminfo"), "MemTotal");
  std::string_view rest = total;
  double bytes = number(take_word(rest)).value_or(0) * 1024;
  keep_smaller(bytes, smallest_memory_limit(kernel_text(root / "proc/self/cgroup"), root / "sys/fs/cgroup"));
  return bytes;
}

}  // namespace harness::machine
