#pragma once

#include "plan/plan.h"
#include "store/result.h"

namespace harness::sweep {

/// The Result before any measurement: cases, blocks in order, configuration.
store::Result planned_result(const plan::Plan& plan);

/// A block of the schedule before it is measured; the `index`-th of its file, and in workers of its own.
store::ResultBlock pending_block(const plan::Slot& slot);

}  // namespace harness::sweep
