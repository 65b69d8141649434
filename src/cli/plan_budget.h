#pragma once

#include <string>

#include "plan/budget.h"

namespace harness::cli {

/// The table of `plan --budget`. `rates_are_stated`: efficiencies were given, so the times that they lead to are shown.
std::string budget_text(const plan::Budget& budget, const std::string& hardware, bool rates_are_stated);

}  // namespace harness::cli
