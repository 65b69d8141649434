#pragma once

#include <string>
#include <vector>

#include "config/settings.h"
#include "measure/nccl_observed.h"

namespace harness {

/// What became of the NCCL settings of a case: of settings.environment's nccl_* variables (absent: left to NCCL, not
/// judged) and of NCCL_* names in settings.env. Each line reads "nccl_algo=AllReduce:Tree: NCCL ran AllReduce with …".
struct NcclVerdict {
  std::vector<std::string> not_honoured;   // NCCL did otherwise, or what was asked cannot have had an effect
  std::vector<std::string> not_confirmed;  // nothing in the log says either way
};

/// `observed` should come from the logs of all ranks: calls are logged by one rank of a communicator, network devices
/// by every process.
NcclVerdict judge_nccl(const Settings& settings, const NcclObserved& observed);

/// One line for each request that NCCL did not follow.
std::vector<std::string> not_honoured(const Settings& settings, const NcclObserved& observed);

}  // namespace harness
