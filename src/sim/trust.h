#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/calibration.h"
#include "config/experiment.h"
#include "config/hardware.h"
#include "config/model.h"
#include "config/settings.h"
#include "sim/simulation.h"

namespace harness::sim {

/// How close a prediction is to the steps that its calibration was compared with (docs/simulation.md). none: unknown.
enum class Tier : std::uint8_t { none, own_cluster, other_cluster, other_gpu, other_software };

/// The errors of predictions with a calibration against measured steps, by tier. nullopt: not known.
struct ExpectedErrors {
  Tier tier = Tier::none;
  std::optional<config::Errors> step;
  std::optional<config::Errors> change;  // between two predicted steps
};
/// Tier A, a cluster with a step in the calibration (its `lab` is "own"), has the errors of the calibration's steps
/// over their groups, and at least those of held-back steps; tier B has at least those of held-back steps of other
/// labs. The figures of C and D come from left-out GPUs and left-out software.
ExpectedErrors expected_errors(const config::Calibration& calibration, const config::Hardware& hardware);

/// A smaller predicted change is too close to call: 9 of 10 errors do not exceed it. An unknown error counts as the
/// largest known one, so that the calibration with the least evidence claims the least; it is never reported as an
/// error.
double least_change(const config::Calibration& calibration, const config::Hardware& hardware);

/// The smallest change that counts in a sweep or plan: `smallest_effect`, and for predictions at least least_change().
double smallest_effect(const config::Experiment& experiment);

/// Returns the variables that differ between the two and whose values the simulation ignores, such as "nccl_buffsize".
/// It models the precision and whatever changes the Program or the placement of ranks; trust.cpp lists the rest.
std::vector<std::string> ignored_between(const config::Settings& a, const config::Settings& b);

/// How far a prediction can be trusted, given the steps that its calibration was compared with. Outside the measured
/// range, the errors of a step are 1.5 times as large (tier E); nvfp4 has errors of its own.
struct Trust {
  ExpectedErrors errors;
  std::string error_words;            // "13.0 % of a step (9 of 10 within 38.0 %; tier B: …), 9.2 % of a change …"
  std::vector<std::string> warnings;  // how this step differs from those: sentences without a full stop
};
Trust trust_in(const Prediction& prediction, const config::Model& model, const config::Settings& settings, int ranks,
               const config::Hardware& hardware, const config::Calibration& calibration);

}  // namespace harness::sim
