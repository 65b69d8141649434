#pragma once

#include <string>

namespace harness::analysis {

/// The time of day, UTC: "14:32:10", or "14:32" without seconds; "?" for what is no time of this age.
std::string clock_text(double unix_s, bool seconds = true);

}  // namespace harness::analysis
