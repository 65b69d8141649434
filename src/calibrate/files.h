#pragma once

#include <string>

#include "calibrate/calibrated.h"

namespace harness::calibrate {

/// The text of a hardware file: the device and the links as they were measured. What nobody told of the device is left
/// out.
std::string hardware_text(const Measured& measured, const Calibrated& found);

/// The text of a calibration that names that file, `hardware`, with its layer's sizes as the range that was measured.
std::string calibration_text(const Measured& measured, const Calibrated& found, const Wanted& wanted,
                             const std::string& hardware);

}  // namespace harness::calibrate
