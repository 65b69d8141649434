#pragma once

#include <string>

#include "plan/plan.h"

namespace harness::sweep {

/// Adds rounds to a sweep that is complete, so that it can be resumed up to `rounds`. What the sweep has concluded so
/// far stands: cases whose verdict is settled are measured no more. For the others there is one look more, which spends
/// error of its own (analysis/looks.h); the file says so. `plan`: of the file's configuration, with `rounds` rounds.
/// Throws Error, and changes nothing, if that would break what the file declared or if there is nothing left to settle.
void extend_file(const std::string& path, const plan::Plan& plan, int rounds);

}  // namespace harness::sweep
