#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "job/job.h"

namespace harness::job {

/// The GPUs of one node, as its ranks see them.
struct NodeGpus {
  std::string host;
  int ranks = 0;
  bool unknown = false;        // a rank could not list them
  bool blind_rank = false;     // a rank sees none
  bool hidden = false;         // a rank sees none, and the node has some
  std::set<std::string> gpus;  // that its ranks see, together
};

/// By number of the node.
std::map<int, NodeGpus> gpus_by_node(const std::vector<RankPlace>& places);

}  // namespace harness::job
