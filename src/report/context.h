#pragma once

#include <string>
#include <vector>

#include "analysis/summary.h"
#include "store/result.h"

namespace harness::report {

/// What holds for the whole table of cases: backend, model, common settings, the formulas and where the peak comes
/// from. A paragraph each.
std::vector<std::string> context(const store::Result& result, const analysis::Summary& summary);

/// The first of them: what the numbers of a backend are worth.
std::string backend_line(const std::string& backend);

}  // namespace harness::report
