#pragma once

#include <string>

#include "analysis/waterfall.h"
#include "report/document.h"

namespace harness::page {

/// From 100 % of the peak down to the measured MFU.
report::Figure waterfall_chart(const analysis::Waterfall& waterfall, const std::string& id,
                               const std::string& case_name);

}  // namespace harness::page
