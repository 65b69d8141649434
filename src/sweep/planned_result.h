#pragma once

#include "plan/plan.h"
#include "store/result.h"

namespace harness {

/// The Result as the plan knows it: cases, blocks in order, configuration; nothing measured yet.
Result planned_result(const Plan& plan);

}  // namespace harness
