#pragma once

#include <string>

#include "analysis/summary.h"
#include "store/result.h"

namespace harness::report {

/// What moved and how sure that is, in one sentence.
std::string headline(const store::Result& result, const analysis::Summary& summary);

}  // namespace harness::report
