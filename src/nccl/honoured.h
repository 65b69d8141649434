#pragma once

#include <span>
#include <string>
#include <vector>

#include "nccl/log.h"

namespace harness::nccl {

/// A request of a case to NCCL: a variable of the registry in canonical form ("nccl_buffsize", "4 MiB",
/// "NCCL_BUFFSIZE"), or an environment variable by its own name.
struct Request {
  std::string name, value, environment_name;
};

/// Whether NCCL followed the requests. Each line reads "nccl_algo=AllReduce:Tree: NCCL ran AllReduce with …".
struct Compliance {
  std::vector<std::string> not_honoured;   // NCCL did otherwise, or the request cannot have had an effect
  std::vector<std::string> not_confirmed;  // the log shows neither
};

/// NCCL's echo of its value decides over a variable that has no rule of its own.
/// `observed` should come from the logs of all ranks: calls are logged by one rank of a communicator, network devices
/// by every process.
Compliance check_compliance(std::span<const Request> requests, const Observed& observed);

}  // namespace harness::nccl
