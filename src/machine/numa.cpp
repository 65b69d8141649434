#include "machine/numa.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "machine/proc.h"
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

}  // namespace harness::machine
