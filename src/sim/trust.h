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

/// How near a question is to the steps that its calibration was compared with (docs/simulation.md). none: nothing is
/// known of the error.
enum class Tier : std::uint8_t { none, own_cluster, other_cluster, other_gpu, other_software };

/// How far predictions with a calibration are from measured steps, by the tier of the question. nullopt: not known.
struct ExpectedErrors {
  Tier tier = Tier::none;
  std::optional<config::Errors> step;
  std::optional<config::Errors> change;  // between two predicted steps
};
/// Tier A, a cluster of which the calibration has a step (its `lab` is "own"), has the errors of the calibration's own
/// rows over their groups, and no less than those of steps that were held back. The figures of B to D are those that
/// held-back steps of other labs, left-out GPUs and left-out software had.
ExpectedErrors expected_errors(const config::Calibration& calibration, const config::Hardware& hardware);

/// A predicted change that is smaller is too close to call: 9 of 10 errors do not exceed it. An error that is not known
/// is taken to be as large as the largest that is, so that the calibration of which least is known claims least. It is
/// stated nowhere as an error.
double least_change(const config::Calibration& calibration, const config::Hardware& hardware);

/// The change that decides in a sweep or a plan: `smallest_effect` as the configuration has it, and of predictions no
/// less than what is too close to call.
double smallest_effect(const config::Experiment& experiment);

/// The variable by which the two differ and of whose value the simulation knows nothing, "nccl_buffsize"; "" if there
/// is none. What changes the Program, where ranks stand or the precision it knows; of the rest what stands in
/// trust.cpp.
std::string unknown_change(const config::Settings& baseline, const config::Settings& changed);

/// Variables that these settings set to something of which a prediction takes no account.
std::vector<std::string> disregarded(const config::Settings& settings);

/// How far a prediction may be relied on, by what its calibration was compared with. Outside of what was measured the
/// errors of a step are half as large again (tier E), and those of nvfp4 are its own.
struct Trust {
  ExpectedErrors errors;
  std::string error_words;            // "13.0 % of a step (9 of 10 within 38.0 %; tier B: …), 9.2 % of a change …"
  std::vector<std::string> warnings;  // where this step is none of those: sentences without a full stop
};
Trust trust_in(const Prediction& prediction, const config::Model& model, const config::Settings& settings, int ranks,
               const config::Hardware& hardware, const config::Calibration& calibration);

}  // namespace harness::sim
