#pragma once

#include <string>
#include <vector>

#include "config/calibration.h"
#include "config/hardware.h"
#include "config/model.h"
#include "config/settings.h"
#include "sim/predict.h"

namespace harness::sim {

/// How far a prediction may be relied on, by what its calibration was compared with. Errors are shares, 0: not known.
struct Trust {
  /// Of the step: the mean size of the errors of measured steps; on a GPU of which none was measured, of those whose
  /// GPU the fit left out.
  double expected_error = 0;
  double expected_error_90 = 0;      // that 9 of 10 did not exceed
  double expected_change_error = 0;  // of a change between two predicted steps
  double expected_change_error_90 = 0;
  std::vector<std::string> warnings;  // where this step is none of those: sentences without a full stop
};
Trust trust_in(const Prediction& prediction, const config::Model& model, const config::Settings& settings, int ranks,
               const config::Hardware& hardware, const config::Calibration& calibration);

}  // namespace harness::sim
