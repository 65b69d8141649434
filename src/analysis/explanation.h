#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/part.h"

namespace harness::analysis {

// A result compared with a prediction of the same job on hardware that does what it promises: this tells a slow cluster
// from a slow configuration. The room `explain` computes the comparison; these are the values that reports show.
// docs/diagnosis.md defines them.

/// One kind of operation, in seconds of a step, means over the ranks. Of communications without the waiting for others.
struct KindCompared {
  std::string kind, group;  // "all_reduce", "data"; computations have no group
  bool recomputed = false;
  double measured_takes_s = 0, predicted_takes_s = 0;  // from their starts to their ends, hidden or not
  double measured_owns_s = 0, predicted_owns_s = 0;    // of the step

  double excess_s() const { return measured_owns_s - predicted_owns_s; }
};

/// The parts of a step that are not operations: waiting, bubble, loading, idle.
struct PartCompared {
  Part part = Part::idle;
  double measured_s = 0, predicted_s = 0;

  double excess_s() const { return measured_s - predicted_s; }
};

/// One case. What its kinds own and its parts add up to its step, on both sides.
struct CaseCompared {
  std::int32_t case_index = 0;
  double measured_s = 0, predicted_s = 0;  // the profiled step
  std::vector<KindCompared> kinds;         // the largest excess first
  std::vector<PartCompared> parts;         // likewise
};

/// Something that is wrong with the cluster, and whose picture the measured step is.
struct Cause {
  std::string fault;  // as `faults` of a configuration has it: "slow_link"
  std::string words;  // "node 5 has 50 % of its network"
  /// Causes that would look (nearly) the same, the better first: as `faults` has them, and in words.
  std::vector<std::pair<std::string, std::string>> or_else;
  std::vector<std::string> checks;  // of doctor: those that tell these apart; without or_else, those that would see it
  std::string confirmed_by;         // a finding of doctor in the same file: "pcie.width"; "": none
  double with_s = 0;                // the step, predicted with this cause and those before it
  double explains = 0;              // share of what was left unexplained before
};

struct Diagnosis {
  std::int32_t case_index = 0;  // that was looked at
  double measured_s = 0, healthy_s = 0;
  double explained_s = 0;       // the step, predicted with all causes
  double compute_factor = 1;    // computations take so many times as long as predicted, on all ranks alike
  double margin = 0;            // as a share of the step: a smaller excess has no cause
  bool error_is_known = false;  // the margin is the expected error of predicted steps
  std::vector<Cause> causes;    // the one that explains most first; empty: none is named
};

/// A case that has a profiled step and no prediction.
struct CaseNotPredicted {
  std::int32_t case_index = 0;
  std::string why;
};

struct Explanation {
  std::string why_none;  // no case has a prediction: a sentence; "": one has
  std::string hardware, calibration;
  bool of_prediction =
      false;  // what is held against the prediction is one itself, with the faults of its configuration
  std::vector<CaseCompared> cases;              // that have a profiled step and a prediction, in order
  std::vector<CaseNotPredicted> not_predicted;  // in order
  std::optional<Diagnosis> diagnosis;           // of the baseline
  std::string why_no_diagnosis;                 // a sentence; "": there is one, or why_none says it
};

}  // namespace harness::analysis
