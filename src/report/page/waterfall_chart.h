#pragma once

#include <string>

#include "analysis/waterfall.h"
#include "report/document.h"

namespace harness::html {

/// From 100 % of the peak down to the measured MFU.
Figure waterfall_chart(const Waterfall& waterfall, const std::string& id, const std::string& case_name);

}  // namespace harness::html
