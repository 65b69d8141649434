#pragma once

#include <string>

namespace harness {

std::string percent(double share, int decimals = 1);         // "12.3 %"
std::string signed_percent(double share, int decimals = 1);  // "+12.3 %"; a rounded zero has no sign

}  // namespace harness
