#include "launch/gpu_check.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"

namespace harness {
namespace {

struct NodeGpus {
  std::string host;
  int ranks = 0;
  bool unknown = false;
  bool blind_rank = false;     // sees none
  bool hidden = false;         // the node has some, but a rank is not shown any
  std::set<std::string> gpus;  // that its ranks may see, together
};

std::map<int, NodeGpus> by_node(const std::vector<RankPlace>& places) {
  std::map<int, NodeGpus> nodes;
  for (const RankPlace& place : places) {
    NodeGpus& node = nodes[place.node];
    node.host = place.host;
    ++node.ranks;
    node.unknown = node.unknown || place.gpus.count < 0;
    node.blind_rank = node.blind_rank || place.gpus.count == 0;
    node.hidden = node.hidden || (place.gpus.count == 0 && place.gpus.on_node > 0);
    node.gpus.insert(place.gpus.names.begin(), place.gpus.names.end());
  }
  return nodes;
}

// "node1, node2 and 14 more".
std::string some(const std::vector<std::string>& parts) {
  constexpr std::size_t shown = 8;
  if (parts.size() <= shown) return join(parts, ", ");
  const std::vector<std::string> first(parts.begin(), parts.begin() + shown);
  return fmt::format("{} and {} more", join(first, ", "), parts.size() - shown);
}

}  // namespace

std::string check_gpus(const std::vector<RankPlace>& places, bool share_gpus, const std::string& config) {
  const auto nodes = by_node(places);
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
    return fmt::format(
        "backend cuda needs an NVIDIA GPU for every rank, and {} of {} node{} no{}: {}. {}. Without a GPU: "
        "`harness plan {} --ranks {}` says what would run, `backend: cpu` (configs/laptop.yaml) measures on CPU cores",
        without.size(), nodes.size(), nodes.size() == 1 ? " shows" : "s show", hidden ? "ne to its ranks" : "ne",
        some(without),
        hidden ? "CUDA_VISIBLE_DEVICES hides what is there"
               : "The driver lists none (/proc/driver/nvidia/gpus, /dev/nvidia0): `nvidia-smi` on such a node, or the "
                 "container's GPU options, tell more",
        config, places.size());
  }
  if (!crowded.empty()) {
    return fmt::format(
        "backend cuda gives every rank a GPU of its own, and {}. Start one rank per GPU (mpirun --map-by ppr:N:node), "
        "or let more be seen (CUDA_VISIBLE_DEVICES). To test that things work, never for their speed: "
        "--set measure.share_gpus=true",
        some(crowded));
  }
  return "";
}

}  // namespace harness
