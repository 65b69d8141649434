#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace harness::sweep {

/// At least as many bytes as the result of this plan can have, but for what doctor finds: known before anything runs,
/// with as many steps as `steps: auto` may choose, and with the whole timelines of every case. Throws Error if
/// `timeline: all` would keep more intervals than a reader can hold.
std::int64_t needed_space(const plan::Plan& plan);

}  // namespace harness::sweep
