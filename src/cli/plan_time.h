#pragma once

#include <string>

#include "plan/plan.h"

namespace harness::cli {

/// How long the planned blocks take, in words, from the blocks of an earlier result file `like` ("": there is none).
/// Throws Error if the file tells nothing of this plan: another backend, workload, model or number of ranks.
std::string time_text(const plan::Plan& plan, const std::string& like);

}  // namespace harness::cli
