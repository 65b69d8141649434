#pragma once

#include "config/experiment.h"
#include "machine/topology.h"
#include "plan/plan.h"

namespace harness::plan {

/// The experiment with every `from_model` replaced by the values that the configured model's training step has, from
/// its Program for the baseline's settings on `ranks` ranks: message sizes of the baseline's collective over its group,
/// shapes of matrix products, the shape of attention. The baseline's own value is left out. Throws Error with the
/// place where `from_model` stands if the step has none of them.
config::Experiment with_model_values(const config::Experiment& experiment, int ranks,
                                     const machine::Topology& topology = {});

/// Fills `uses` of every possible case from the same Program. Nothing where the configuration has no model, or its
/// training step cannot run on `ranks` ranks.
void name_uses(Plan& plan);

}  // namespace harness::plan
