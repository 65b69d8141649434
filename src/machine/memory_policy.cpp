#include "machine/memory_policy.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "machine/cpus.h"

namespace harness::machine {
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
