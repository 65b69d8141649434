#pragma once

#include <string>
#include <vector>

#include "cli/best.h"
#include "cli/predicted.h"
#include "plan/plan.h"

namespace harness::cli {

/// A plan for programs: `plan --format json`. docs/json.md has its fields.
std::string plan_json(const plan::Plan& plan, const std::vector<PredictedCase>& predicted);
/// JSON of `plan --best`.
std::string best_json(const plan::Plan& plan, const Best& best);

}  // namespace harness::cli
