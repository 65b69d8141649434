#pragma once

#include <cstdint>
#include <vector>

#include "config/experiment.h"
#include "config/faults.h"
#include "program/program.h"
#include "sim/simulation.h"
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

}  // namespace harness::explain
