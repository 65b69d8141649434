#pragma once

#include <cstdint>
#include <deque>
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
  /// For predictions: the result's configuration with the backend sim and without its `faults`, which are never looked
  /// at here.
  config::Experiment experiment;
  /// By rank. The nodes are as large as those of the result, and filled one after the other, as layouts assume. Where
  /// they were not, that is one of the faults to be found.
  std::vector<int> node_of;
};

/// Throws Error, which says what is missing, where nothing can be predicted: ranks are no GPUs, the configuration names
/// no hardware and none is found by the device's name, or it cannot be read any more.
Reference reference_of(const store::Result& result);

/// Where the ranks of a case really stood, by rank; all on one node where the file does not say.
std::vector<int> nodes_of_case(const store::Result& result, std::int32_t case_index);

/// Whether each node has consecutive ranks: they were not dealt to the nodes one by one.
bool stand_node_by_node(const std::vector<int>& node_of);

/// One case of a result, to be predicted again and again under different faults.
class CaseModel {
 public:
  /// Both must outlive the object. Throws Error if the case is not possible, and NotPredicted (sim/nccl_time.h) where
  /// it sets what a prediction does not know.
  CaseModel(const Reference& reference, const store::Result& result, std::int32_t case_index);

  /// A result that has nothing but this case, numbered 0, with its profiled step as a predicted sweep keeps it.
  /// `slower`: all computations take so many times as long as the calibration says. Throws Error as sim::Simulation.
  store::Result predict(const config::Faults& faults, double slower = 1) const;

  /// As predict(), but with the hardware and the faults of `experiment`. `slowdown`: as of a sim::Simulation.
  store::Result predict_on(const config::Experiment& experiment, const sim::Slowdown& slowdown = {}) const;

  const program::ProgramSet& set() const { return set_; }
  const Reference& reference() const { return reference_; }
  const config::Settings& settings() const { return settings_; }
  /// Where its ranks stood, by rank: nodes_of_case.
  const std::vector<int>& stood() const { return stood_; }

 private:
  const Reference& reference_;
  std::vector<int> stood_;
  config::Settings settings_;
  program::ProgramSet set_;  // not lowered
  store::Result alone_;      // without a profiled step
};

/// Where one rank's profiled step went.
struct RankTime {
  double computes_s = 0;
  double communicates_s = 0;  // hidden or not, without the waiting for others
  double waits_s = 0;         // in communications, for later ranks and other stages
};

/// The times of a profiled step in which a fault shows.
struct Picture {
  double step_s = 0;
  std::vector<RankTime> ranks;
  std::vector<analysis::KindTime> kinds;  // means over ranks
};

/// The picture of a measured case with a profiled step. `breakdown`: of that case.
Picture picture_of(const store::Result& result, const analysis::CaseBreakdown& breakdown);
/// The picture of the only case of a predicted result.
Picture picture_of(const store::Result& predicted);

/// How unlike two pictures of one case are, in seconds of a step: what each rank computes, communicates and waits more
/// or less, as a mean over the ranks, and what each kind of communication takes more or less.
double distance(const Picture& a, const Picture& b);

struct Reach;

/// A fault that might explain a step, with the numbers that fit it best.
struct Hypothesis {
  config::Fault fault = config::Fault::slow_gpu;
  config::Faults faults = {};    // this one on top of those that are known
  std::vector<int> places = {};  // nodes or ranks that it may be on; the step cannot tell which; none: everywhere
  bool of_node = false;          // `places` are nodes
  double left = 1;               // share of clock, network or PCIe that it leaves
  bool usual = true;             // it leaves what such a fault leaves: whole rails, half of the lanes …
};

/// A measured case and what it is predicted to look like, with all that was simulated so far.
class Suspects {
 public:
  /// `model` and `measured` must outlive the object.
  Suspects(const CaseModel& model, const Picture& measured) : model_(model), measured_(measured) {}

  /// The picture under these faults. All computations take `slower` times as long.
  const Picture& predicted(const config::Faults& faults, double slower);
  /// How many times as long all computations take if these faults are there, and the picture then.
  double slowness(const config::Faults& faults);
  const Picture& fitted(const config::Faults& faults) { return predicted(faults, slowness(faults)); }

  /// Every kind of fault that could be there beside the known ones, each with the numbers that fit best.
  std::vector<Hypothesis> beside(const config::Faults& known);

 private:
  struct Known {
    config::Faults faults;
    double slower = 1;
    Picture picture;
  };

  void add_slow_gpu(const config::Faults& known, std::vector<Hypothesis>& found);
  void add_network(const config::Faults& known, std::vector<Hypothesis>& found);
  void add_everywhere(const config::Faults& known, const sim::Network& network, std::vector<Hypothesis>& found);
  void add_slow_link(const config::Faults& known, const sim::Network& network, const Reach& nodes,
                     std::vector<Hypothesis>& found);
  void add_narrow_pcie(const config::Faults& known, const sim::Network& network, const Reach& reach, bool of_node,
                       std::vector<Hypothesis>& found);
  template <class With>
  double share_that_fits(const config::Faults& known, const std::vector<bool>& affected, const With& with);

  const CaseModel& model_;
  const Picture& measured_;
  std::deque<Known> simulated_;  // references to its pictures stay valid
};

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
