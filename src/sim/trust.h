#pragma once

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

/// How far predictions with a calibration were from measured steps: this calibration and no other, on this GPU. A GPU
/// on which no step was measured has the errors that remain when the fit leaves a GPU out. nullopt: not known.
struct ExpectedErrors {
  std::optional<config::Validation::Errors> step;
  std::optional<config::Validation::Errors> change;  // between two predicted steps
};
ExpectedErrors expected_errors(const config::Calibration& calibration, const config::Hardware& hardware);
/// "5.3 % of a step (9 of 10 within 15.0 %), 9.2 % of a change (9 of 10 within 24.0 %)", or why none is stated.
std::string expected_error_words(const config::Calibration& calibration, const config::Hardware& hardware);

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

/// How far a prediction may be relied on, by what its calibration was compared with.
struct Trust {
  ExpectedErrors errors;
  std::string error_words;
  std::vector<std::string> warnings;  // where this step is none of those: sentences without a full stop
};
Trust trust_in(const Prediction& prediction, const config::Model& model, const config::Settings& settings, int ranks,
               const config::Hardware& hardware, const config::Calibration& calibration);

}  // namespace harness::sim
