#pragma once

#include <optional>
#include <string>

#include "config/experiment.h"

namespace harness {

/// Why these settings cannot be had together, or not on this hardware as far as its file says; "" if they can. Each
/// value alone is valid. Only what is certain is refused: what may work is left to be tried.
std::string check_settings(const Settings& settings, const std::optional<Hardware>& hardware);

}  // namespace harness
