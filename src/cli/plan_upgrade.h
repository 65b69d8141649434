#pragma once

#include <iosfwd>

#include "cli/verbs.h"

namespace harness::cli {

/// Whether `plan` was given a result file in the place of a configuration.
bool plans_a_result(const PlanOptions& options);

/// `plan FILE.h5 --hardware NAME`: what the steps of a result would take on other hardware.
int plan_upgrade(const PlanOptions& options, std::ostream& out);

}  // namespace harness::cli
