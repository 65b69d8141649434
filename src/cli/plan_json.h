#pragma once

#include <string>
#include <vector>

#include "cli/predicted.h"
#include "plan/plan.h"

namespace harness::cli {

/// A plan for programs: `plan --format json`. docs/json.md has its fields.
std::string plan_json(const plan::Plan& plan, const std::vector<PredictedCase>& predicted);

}  // namespace harness::cli
