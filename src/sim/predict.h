#pragma once

#include <string>
#include <vector>

#include "config/calibration.h"
#include "config/hardware.h"
#include "config/settings.h"
#include "program/step_split.h"
#include "sim/engine.h"
#include "sim/link_time.h"

namespace harness::sim {

/// A step that was computed, not measured.
struct Prediction {
  double step_s = 0;
  program::StepSplit split;          // mean over the ranks
  double largest_message_bytes = 0;  // of a collective
};

/// The step of the job that these Programs are, not yet lowered, with these settings. Throws Error if the hardware or
/// the network lacks a number that the step needs, and
/// NotPredicted (sim/known.h) for settings with which it would not run.
Prediction predict(const program::ProgramSet& programs, const config::Settings& settings,
                   const config::Hardware& hardware, const Network& network, const config::Calibration& calibration);

}  // namespace harness::sim
