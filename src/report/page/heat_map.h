#pragma once

#include <string>

#include "analysis/stragglers.h"
#include "report/document.h"

namespace harness::html {

/// Ranks by steps: how far each was behind the median rank of its step.
Figure heat_map(const HeatMap& heat, const std::string& where);

}  // namespace harness::html
