#pragma once

#include <string>
#include <vector>

#include "launch/job.h"

namespace harness {

/// What a person must hear before a sweep on GPUs starts, "" if nothing: nodes without a GPU, or with fewer than ranks
/// (fine when `share_gpus`). Nodes whose GPUs cannot be told are left to the workers. `config` is for the advice.
std::string check_gpus(const std::vector<RankPlace>& places, bool share_gpus, const std::string& config);

}  // namespace harness
