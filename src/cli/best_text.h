#pragma once

#include <string>

#include "cli/best.h"

namespace harness::cli {

/// The table of `plan --best`, and what became of the combinations that are not in it, for a person.
std::string best_text(const plan::Plan& plan, const Best& best);

}  // namespace harness::cli
