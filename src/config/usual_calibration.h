#pragma once

#include <string>

#include "config/settings.h"

namespace harness::config {

/// The calibration whose software a step is most like, and the reason for a person: "tensor_parallel 8".
struct UsualCalibration {
  const char* file;
  std::string why;
};
/// For a configuration that names no calibration. The software decides, never the GPU (docs/simulation.md).
UsualCalibration usual_calibration(const Settings& baseline);

}  // namespace harness::config
