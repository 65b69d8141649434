#pragma once

#include <string>

#include "calibrate/laws.h"
#include "config/hardware.h"

namespace harness::calibrate {

/// The text of a hardware file: the device and the links as they were measured. `known`: what its vendor states of the
/// device, nullptr where nobody does; counts and names are taken from there, never a rate.
std::string hardware_text(const Measured& measured, const Laws& laws, const config::Hardware* known);

/// The text of a calibration that names that file, `hardware`, with its layer's sizes as the range that was measured.
std::string calibration_text(const Measured& measured, const Laws& laws, const Wanted& wanted,
                             const std::string& hardware);

}  // namespace harness::calibrate
