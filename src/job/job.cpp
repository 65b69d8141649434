#include "job/job.h"

namespace harness::job {

std::map<int, NodeGpus> gpus_by_node(const std::vector<RankPlace>& places) {
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

}  // namespace harness::job
