#include "sweep/require_gpus.h"

#include "base/error.h"
#include "base/text.h"
#include "job/node_gpus.h"

namespace harness::sweep {
namespace {

// "node1, node2 and 14 more".
std::string some(const std::vector<std::string>& parts) {
  constexpr std::size_t max_shown = 8;
  if (parts.size() <= max_shown) return join(parts, ", ");
  const std::vector<std::string> first(parts.begin(), parts.begin() + max_shown);
  return fmt::format("{} and {} more", join(first, ", "), parts.size() - max_shown);
}

// The way out of both kinds of missing GPUs.
std::string advice_without_gpus(const std::string& config, std::size_t ranks) {
  return fmt::format(
      "Without a GPU: `harness plan {} --ranks {}` shows what would run; `backend: cpu` (configs/laptop.yaml) measures "
      "on CPU cores",
      shell_word(config), ranks);
}

std::string missing_gpus(const std::vector<std::string>& hosts, std::size_t nodes, bool hidden,
                         const std::string& advice) {
  if (hidden) {
    return fmt::format(
        "backend cuda needs an NVIDIA GPU for every rank, but ranks on {} of {} nodes see none: {}. "
        "CUDA_VISIBLE_DEVICES hides the GPUs of these nodes. {}",
        hosts.size(), nodes, some(hosts), advice);
  }
  return fmt::format(
      "backend cuda needs an NVIDIA GPU for every rank, but {} of {} nodes have none: {}. The driver lists no GPU "
      "(/proc/driver/nvidia/gpus, /dev/nvidia0): run `nvidia-smi` on such a node, or check the container's GPU "
      "options. {}",
      hosts.size(), nodes, some(hosts), advice);
}

}  // namespace

void require_gpus(const std::vector<job::RankPlace>& places, bool share_gpus, const std::string& config) {
  const auto nodes = job::gpus_by_node(places);
  std::vector<std::string> without, crowded;
  bool hidden = false;
  for (const auto& [number, node] : nodes) {
    if (node.unknown) continue;
    const auto gpus = static_cast<int>(node.gpus.size());
    if (node.blind_rank) {
      without.push_back(node.host);
      hidden = hidden || node.hidden;
    } else if (node.ranks > gpus && !share_gpus) {
      crowded.push_back(fmt::format("{} has {} ranks and {} GPU{}", node.host, node.ranks, gpus, gpus == 1 ? "" : "s"));
    }
  }
  if (!without.empty()) {
    throw Error(missing_gpus(without, nodes.size(), hidden, advice_without_gpus(config, places.size())));
  }
  if (!crowded.empty()) {
    fail(
        "backend cuda needs a GPU of its own for every rank, but {}. Start one rank per GPU (mpirun --map-by "
        "ppr:N:node), or make more GPUs visible (CUDA_VISIBLE_DEVICES). For functional tests only, ranks may share "
        "GPUs: --set measure.share_gpus=true",
        some(crowded));
  }
}

}  // namespace harness::sweep
