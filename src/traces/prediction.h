#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/experiment.h"
#include "evidence/answer.h"
#include "traces/read.h"

namespace harness::traces {

/// A part of the step, measured and predicted, in seconds. Parts that a trace does not tell apart are one:
/// communication of all axes where no axis is known, with the waiting in it where that is not.
struct PartBeside {
  std::string name;
  double measured_s = 0, predicted_s = 0;
  double excess_s() const { return measured_s - predicted_s; }
};

/// A traced step beside the step that is predicted of the same job.
struct Beside {
  std::string hardware, calibration;
  int ranks = 0;
  double measured_s = 0, predicted_s = 0;
  std::optional<double> measured_mfu, predicted_mfu;  // absent: the peak is not known
  std::vector<PartBeside> parts;                      // the largest excess first; they add up to the steps
  std::vector<std::string> causes;                    // what the excess is the picture of, each with what to do
};

/// Predicts the baseline of a configuration on as many ranks as the traces say, healthy and on full nodes, and sets the
/// traced step beside it. `experiment`: loaded with config::predict. Throws Error where nothing can be predicted.
Beside beside_prediction(const Report& report, config::Experiment experiment);

/// For people, and with all its numbers as JSON: `prediction`.
evidence::Answer answer_of(const Beside& beside, const std::string& configuration);

}  // namespace harness::traces
