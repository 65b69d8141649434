#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/breakdown.h"
#include "analysis/findings.h"
#include "base/part.h"
#include "explain/hypothesis.h"
#include "sim/trust.h"
#include "store/result.h"

namespace harness::explain {

/// Sets what a step took beside what it was predicted to take, kind by kind, the largest excess first. Pure: both are
/// means over ranks of profiled steps of one case (analysis::CaseBreakdown::mean).
analysis::CaseCompared compare_with_prediction(const analysis::Breakdown& measured,
                                               const analysis::Breakdown& predicted);

/// Finds out which faults a measured case is the picture of, by synthesis: every kind of fault is fitted to the picture
/// and simulated, the one that leaves least unexplained is named, and the search goes on beside it. A fault is named
/// only if it makes the step longer by more than the expected error of predictions, and explains much more than
/// "healthy, but all computations so many times as slow". docs/diagnosis.md has the rules. `result`: of its ranks and
/// of doctor's findings alone.
analysis::Diagnosis diagnose(const CaseModel& model, const Picture& measured, const store::Result& result);

/// Predicts the cases of a result that have a profiled step (read_result with the timeline) and says what sets them
/// apart. Throws nothing for what the result lacks: `why_none` says it.
analysis::Explanation explain(const store::Result& result);

// Forecasts the time of a measured step on other hardware. Each kind of operation keeps its efficiency, the ratio of
// predicted to measured time; traffic between nodes keeps it as if the network were slower. So a defect of the cluster
// or the configuration is part of the forecast. docs/simulation.md defines it.

/// One case.
struct CaseMoved {
  std::int32_t case_index = 0;
  std::string why_none;   // there is no forecast; "": there is one
  double measured_s = 0;  // the step: the median of timed ones, as a report has it
  double forecast_s = 0;  // the same, shortened as the profiled step is
  double healthy_s = 0;   // what is predicted there of a job that runs as predicted
  std::optional<double> measured_mfu, forecast_mfu;
  double network = 1;     // share of the rate between nodes that explains what communication between them took
  std::string too_large;  // why it does not fit in the memory there; "" if it does
  sim::Trust trust;       // in what is predicted there
};

struct Upgrade {
  std::string from, to;     // names of hardware
  std::string calibration;  // of the predictions
  bool of_prediction = false;
  std::vector<CaseMoved> cases;  // that have a profiled step, in order
};

/// Moves a result (read_result with the timeline) to the hardware of this file. Throws Error if there is no such file,
/// if the result has no profiled step or was not measured on GPUs, or if nothing says what hardware it is from. `only`:
/// cases, by their names or those of variables; empty: all.
Upgrade move_to(const store::Result& result, const std::string& hardware, const std::vector<std::string>& only = {});

}  // namespace harness::explain
