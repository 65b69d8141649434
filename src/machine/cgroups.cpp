#include "machine/cgroups.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/text.h"
#include "machine/tree.h"

namespace harness::machine {
namespace {

const std::string mount = "sys/fs/cgroup";

// Folders in which the hierarchy of a line of /proc/self/cgroup may be mounted: version 2's ("0::/path") at the top or
// beside version 1, a controller's of version 1 ("4:cpu,cpuacct:/path") under all of its names or its own.
std::vector<std::string> mounts_of(std::string_view controllers, const std::string& controller) {
  if (controllers.empty()) return {mount, mount + "/unified"};
  const std::vector<std::string_view> names = split(controllers, ',');
  if (std::ranges::find(names, controller) == names.end()) return {};
  if (names.size() == 1) return {mount + "/" + controller};
  return {mount + "/" + std::string(controllers), mount + "/" + controller};
}

// Calls look(folder) for every folder of the process's group and its parents. Inside a container the path may name what
// only the host sees; then the mount's root is all there is.
template <class Look>
GroupLimit smallest(const Tree& tree, const std::string& controller, Look&& look) {
  const Reading groups = tree.bytes("proc/self/cgroup");
  GroupLimit limit{groups.access, 0, groups.why};
  std::string_view text = groups.text;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first == std::string_view::npos ? first : first + 1);
    if (second == std::string_view::npos) continue;
    for (const std::string& place : mounts_of(line.substr(first + 1, second - first - 1), controller)) {
      std::filesystem::path group = std::filesystem::path(line.substr(second + 1)).relative_path();
      for (int depth = 0; depth < 64; ++depth) {  // deeper than control groups may be nested
        look((place / group).string(), limit);
        if (group.empty()) break;
        group = group.parent_path();
      }
    }
  }
  return limit;
}

// The numbers in a file's first line. "max" and "-1" are no limits; a file that is there and cannot be read makes the
// limit unknown.
std::vector<double> numbers_in(const Tree& tree, const std::string& path, GroupLimit& limit) {
  const Reading reading = tree.line(path);
  if (reading.access == Access::unreadable && limit.access == Access::read) {
    limit.access = Access::unreadable;
    limit.why = reading.why;
  }
  std::vector<double> all;
  std::string_view rest = reading.text;
  for (std::string_view word = take_word(rest); !word.empty(); word = take_word(rest)) {
    const auto value = number(word);
    if (!value) return {};
    all.push_back(*value);
  }
  return all;
}

void keep_smaller(double& smallest, double value) {
  if (value > 0 && (smallest == 0 || value < smallest)) smallest = value;
}

}  // namespace

GroupLimit cpu_quota(const Tree& tree) {
  return smallest(tree, "cpu", [&](const std::string& group, GroupLimit& limit) {
    const std::vector<double> both = numbers_in(tree, group + "/cpu.max", limit);
    if (both.size() == 2 && both[1] > 0) keep_smaller(limit.value, both[0] / both[1]);
    const std::vector<double> quota = numbers_in(tree, group + "/cpu.cfs_quota_us", limit),
                              period = numbers_in(tree, group + "/cpu.cfs_period_us", limit);
    if (quota.size() == 1 && period.size() == 1 && period[0] > 0) keep_smaller(limit.value, quota[0] / period[0]);
  });
}

GroupLimit memory_limit(const Tree& tree) {
  return smallest(tree, "memory", [&](const std::string& group, GroupLimit& limit) {
    for (const char* file : {"/memory.max", "/memory.limit_in_bytes"}) {
      const std::vector<double> bytes = numbers_in(tree, group + file, limit);
      if (bytes.size() == 1) keep_smaller(limit.value, bytes[0]);
    }
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

}  // namespace harness::machine
