#pragma once

#include <string>
#include <vector>

#include "base/text.h"
#include "config/registry.h"
#include "nccl/honoured.h"

namespace harness::config {

/// The environment variables that a case's settings stand for: those of the variables that a library reads from its
/// environment (nccl_algo becomes NCCL_ALGO), then `env` as it is. The only place that knows.
NameValues environment_of(const Settings& settings);

/// What the library reads where people write `printed`, a value of `variable`.
std::string environment_text(const Variable& variable, const std::string& printed);

/// What these settings ask of NCCL, to be held against its log.
std::vector<nccl::Request> nccl_requests(const Settings& settings);

}  // namespace harness::config
