#pragma once

#include "plan/plan.h"
#include "store/result.h"

namespace harness::sweep {

/// The Result before any measurement: cases, blocks in order, configuration.
store::Result planned_result(const plan::Plan& plan);

}  // namespace harness::sweep
