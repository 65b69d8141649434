#pragma once

#include <string>
#include <vector>

#include "job/job.h"

namespace harness::sweep {

/// Throws Error if a rank has no GPU, or if a node has fewer GPUs than ranks and `share_gpus` is not set. Nodes whose
/// GPUs cannot be listed pass: their workers find out. `config` is the path that the error's advice names.
void require_gpus(const std::vector<job::RankPlace>& places, bool share_gpus, const std::string& config);

}  // namespace harness::sweep
