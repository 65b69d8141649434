#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/breakdown.h"
#include "analysis/findings.h"
#include "config/experiment.h"
#include "program/program.h"
#include "sim/link_time.h"
#include "sim/simulation.h"
#include "sim/trust.h"
#include "store/result.h"

namespace harness::explain {

/// The reference that a result is compared with: the same job on healthy hardware.
struct Reference {
  /// For predictions: the result's configuration with the backend sim and without its `faults`, which are ignored here.
  config::Experiment experiment;
  /// By rank. Nodes have the same sizes as in the result and are filled one after the other, as layouts assume. If they
  /// were not, that is one of the faults to find.
  std::vector<int> node_of;
};

/// Builds the reference. Throws Error, which says what is missing, if no prediction is possible: ranks are not GPUs,
/// the configuration names no hardware and none is found by the device's name, or it can no longer be read.
Reference reference_of(const store::Result& result);

/// Returns the actual node of each rank of a case; all on one node if the file does not say.
std::vector<int> nodes_of_case(const store::Result& result, std::int32_t case_index);

/// Whether each node has consecutive ranks, rather than ranks dealt round-robin.
bool stand_node_by_node(const std::vector<int>& node_of);

/// One case of a result, to predict repeatedly under different faults.
class CaseModel {
 public:
  /// Both must outlive the object. Throws Error if the case is not possible, and NotPredicted (sim/link_time.h) if it
  /// sets a variable that predictions do not know.
  CaseModel(const Reference& reference, const store::Result& result, std::int32_t case_index);

  /// Returns a result with only this case, numbered 0, and its profiled step as a predicted sweep stores it. `slower`:
  /// factor on all computations relative to the calibration. Throws Error like sim::Simulation.
  store::Result predict(const config::Faults& faults, double slower = 1) const;

  /// Like predict(), but with the hardware and the faults of `experiment`. `slowdown`: as in sim::Simulation.
  store::Result predict_on(const config::Experiment& experiment, const sim::Slowdown& slowdown = {}) const;

  const program::ProgramSet& set() const { return set_; }
  const Reference& reference() const { return reference_; }
  const config::Settings& settings() const { return settings_; }
  /// The node of each rank: nodes_of_case.
  const std::vector<int>& stood() const { return stood_; }

 private:
  const Reference& reference_;
  std::vector<int> stood_;
  config::Settings settings_;
  program::ProgramSet set_;  // not lowered
  store::Result alone_;      // without a profiled step
};

/// The time of one rank's profiled step.
struct RankTime {
  double computes_s = 0;
  double communicates_s = 0;  // hidden or exposed, without the waiting for others
  double waits_s = 0;         // in communications, for slower ranks and other stages
};

/// The times of a profiled step that reveal a fault.
struct Picture {
  double step_s = 0;
  std::vector<RankTime> ranks;            // of a measured step all of the job, of a predicted one those that it uses
  std::vector<analysis::KindTime> kinds;  // means over ranks
};

/// Returns the picture of a case with a profiled step. `breakdown`: of that case.
Picture picture_of(const store::Result& result, const analysis::CaseBreakdown& breakdown);

/// Solves length(x) = measured by the secant method, for a length that grows about linearly from length(1) = at_1 on.
/// Nothing if no x <= `most` does. `tolerance`: relative; `steps`: the most that it takes.
std::optional<double> solve(double measured, double at_1, double guess, double most,
                            const std::function<double(double)>& length, double tolerance = 0.002, int steps = 5);

/// A fault that might explain a step, with its best-fitting parameters.
struct Hypothesis {
  config::Fault fault = config::Fault::slow_gpu;
  config::Faults faults = {};    // this one in addition to the known ones
  std::vector<int> places = {};  // candidate nodes or ranks, which the step cannot tell apart; none: everywhere
  bool of_node = false;          // `places` are nodes
  double left = 1;               // remaining share of clock, network or PCIe
  bool usual = true;             // the share is typical of such a fault: whole rails, half of the lanes …
};

/// A measured case and its predictions, with a cache of all simulations so far.
class Suspects {
 public:
  /// `model` and `measured` must outlive the object.
  Suspects(const CaseModel& model, const Picture& measured) : model_(model), measured_(measured) {}

  const CaseModel& model() const { return model_; }
  const Picture& measured() const { return measured_; }
  /// Returns the picture under these faults, with all computations taking `slower` times as long.
  const Picture& predicted(const config::Faults& faults, double slower);
  /// Returns the factor on all computations with which these faults fit best; fitted() returns the picture with it.
  double slowness(const config::Faults& faults);
  const Picture& fitted(const config::Faults& faults) { return predicted(faults, slowness(faults)); }
  /// Returns the difference of the measured picture from that one, in seconds of a step: the absolute differences in
  /// what each rank computes, communicates and waits, as a mean over the ranks, plus those of each kind of
  /// communication.
  double unexplained_s(const config::Faults& faults);

 private:
  struct Known {
    config::Faults faults;
    double slower = 1;
    Picture picture;
  };

  const CaseModel& model_;
  const Picture& measured_;
  std::deque<Known> simulated_;  // references to its pictures stay valid
};

/// Returns every kind of fault that could add to the known ones, each with best-fitting parameters.
std::vector<Hypothesis> hypotheses(Suspects& suspects, const config::Faults& known);

/// Compares a measured step with its prediction, kind by kind, largest excess first. Pure: both are means over ranks of
/// profiled steps of one case (analysis::CaseBreakdown::mean).
analysis::CaseCompared compare_with_prediction(const analysis::Breakdown& measured,
                                               const analysis::Breakdown& predicted);

/// Finds the faults that a measured case looks like, by synthesis: fits and simulates every kind of fault, names the
/// one that leaves least unexplained, and continues the search with it. A fault is named only if it lengthens the step
/// by more than the expected error of predictions, and explains much more than "healthy, but all computations slower by
/// a common factor". docs/diagnosis.md has the rules. Reads only the ranks and doctor's findings of `result`.
analysis::Diagnosis diagnose(const CaseModel& model, const Picture& measured, const store::Result& result);

/// Predicts the cases of a result that have a profiled step (read_result with the timeline) and reports the
/// differences. Does not throw for what the result lacks: `why_none` says it.
analysis::Explanation explain(const store::Result& result);

// Forecasts the time of a measured step on other hardware. Each kind of operation keeps its efficiency, the ratio of
// predicted to measured time; traffic between nodes keeps a lower network rate. So the forecast includes any defect of
// the cluster or the configuration. docs/simulation.md defines it.

/// One case.
struct CaseMoved {
  std::int32_t case_index = 0;
  std::string why_none;   // why there is no forecast; "": there is one
  double measured_s = 0;  // step time: the median of timed steps, as in a report
  double forecast_s = 0;  // measured_s, scaled as the profiled step
  double healthy_s = 0;   // predicted there for a job that runs as predicted
  std::optional<double> measured_mfu, forecast_mfu;
  double network = 1;     // share of the rate between nodes that explains the measured communication between them
  std::string too_large;  // why it does not fit in the memory there; "" if it does
  sim::Trust trust;       // in the prediction there
};

struct Upgrade {
  std::string from, to;     // hardware names
  std::string calibration;  // calibration of the predictions
  bool of_prediction = false;
  std::vector<CaseMoved> cases;  // cases with a profiled step, in order
};

/// Moves a result (read_result with the timeline) to the hardware of the file `hardware`. Throws Error if there is no
/// such file, if the result has no profiled step or was not measured on GPUs, or if nothing says what hardware it is
/// from. `only`: cases, by their names or those of variables; empty: all.
Upgrade move_to(const store::Result& result, const std::string& hardware, const std::vector<std::string>& only = {});

}  // namespace harness::explain
