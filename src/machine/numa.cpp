#include "machine/numa.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "machine/cpus.h"
#include "machine/tree.h"

namespace harness::machine {
namespace {

// A number of a NUMA node; -1: it is none.
int node_in(std::optional<double> number) {
  constexpr double most = 1023;  // that Linux has
  return number && *number <= most ? static_cast<int>(*number) : -1;
}

}  // namespace

// The folder of a CPU has a link to that of its NUMA node.
int numa_node_of(int cpu, const std::filesystem::path& root) {
  for (const std::string& name : Tree(root).names(fmt::format("sys/devices/system/cpu/cpu{}", cpu)).names) {
    if (const int node = name.starts_with("node") ? node_in(number(name.substr(4))) : -1; node >= 0) return node;
  }
  return -1;
}

Surroundings surroundings_of(const std::string& pci_bus_id, const std::filesystem::path& root) {
  const Tree tree(root);
  const std::string folder = "sys/bus/pci/devices/" + lower(pci_bus_id);
  return {cpus_in(tree.line(folder + "/local_cpulist").text), node_in(number(tree.line(folder + "/numa_node").text))};
}

CpuSet part_of_gpu(const std::string& pci_bus_id, const CpuSet& cpus, const std::filesystem::path& root) {
  const CpuSet near = surroundings_of(pci_bus_id, root).cpus;
  std::vector<std::string> neighbours = Tree(root).names("proc/driver/nvidia/gpus").names;
  for (std::string& name : neighbours) name = lower(name);
  std::erase_if(neighbours, [&](const std::string& gpu) { return surroundings_of(gpu, root).cpus != near; });
  const auto own = std::ranges::find(neighbours, lower(pci_bus_id));
  const std::vector<std::vector<int>> cores = cores_of(near & cpus, root);
  CpuSet part;
  if (own == neighbours.end() || near.none()) return part;
  const std::size_t each = cores.size() / neighbours.size(), first = each * (own - neighbours.begin());
  for (std::size_t core = first; core < first + each; ++core) {
    for (const int cpu : cores[core]) part.set(static_cast<std::size_t>(cpu));
  }
  return part;
}

namespace {

constexpr std::size_t word_bits = 8 * sizeof(unsigned long), most_nodes = 16 * word_bits;

std::string refusal() {
  std::string why = std::strerror(errno);
  if (!why.empty()) why[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(why[0])));
  return why;
}

}  // namespace

MemoryPolicy preferring(int numa_node) {
  MemoryPolicy policy{MPOL_PREFERRED, {}};
  const auto node = static_cast<std::size_t>(numa_node);
  policy.nodes.at(node / word_bits) = 1ul << (node % word_bits);
  return policy;
}

std::string get_memory_policy(MemoryPolicy& policy) {
  policy = {};
  return ::syscall(SYS_get_mempolicy, &policy.mode, policy.nodes.data(), most_nodes, nullptr, 0ul) == 0 ? ""
                                                                                                        : refusal();
}

std::string set_memory_policy(const MemoryPolicy& policy) {
  const bool own = policy.mode == MPOL_DEFAULT;  // which takes no set
  const long result =
      ::syscall(SYS_set_mempolicy, policy.mode, own ? nullptr : policy.nodes.data(), own ? 0ul : most_nodes + 1);
  return result == 0 ? "" : refusal();
}

std::string with_advice(const std::string& refusal) {
  if (refusal == "operation not permitted") return refusal + "; a container needs --cap-add SYS_NICE";
  if (refusal == "invalid argument")
    return refusal + "; that node has no memory, or the job may not use it (--cpuset-mems, cpuset.mems)";
  return refusal;
}

std::string describe(const MemoryPolicy& policy) {
  static const std::vector<std::string> names{"default",        "preferred",          "bind", "interleave", "local",
                                              "preferred-many", "weighted-interleave"};
  const auto mode = static_cast<std::size_t>(policy.mode & ~MPOL_MODE_FLAGS);
  CpuSet nodes;
  for (std::size_t node = 0; node < most_nodes; ++node)
    nodes[node] = (policy.nodes[node / word_bits] >> (node % word_bits)) & 1ul;
  const std::string name = mode < names.size() ? names[mode] : fmt::format("mode {}", mode);
  return nodes.none() ? name : fmt::format("{} {}", name, list_of(nodes));
}

}  // namespace harness::machine
