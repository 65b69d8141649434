#pragma once

#include "program/step_split.h"
#include "sim/critical_path.h"
#include "sim/simulation.h"

namespace harness::sim {

/// A step that was computed, not measured.
struct Prediction {
  double step_s = 0;
  program::StepSplit split;          // mean over the ranks
  double largest_message_bytes = 0;  // of a collective
  CriticalPath critical_path;
};
Prediction predict(const Simulation& simulation);

}  // namespace harness::sim
