#pragma once

#include <string>

#include "analysis/stragglers.h"
#include "report/document.h"

namespace harness::page {

/// Ranks by steps: how far each was behind the median rank of its step.
report::Figure heat_map(const analysis::HeatMap& heat, const std::string& where);

}  // namespace harness::page
