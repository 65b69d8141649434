#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/experiment.h"
#include "machine/topology.h"
#include "plan/plan.h"

namespace harness::plan {

/// The plan of an experiment with the survey of every possible case, and the values of the model filled in. Cases that
/// do not fit in a known memory are impossible. Pure but
/// for reading files that `experiment` names. Throws Error.
Plan prepare(const config::Experiment& experiment, int ranks, const std::vector<std::string>& only,
             Processes processes = Processes::as_needed, const machine::Topology& topology = {});

/// A dense peak and where it is from.
struct Peak {
  double flops = 0;  // of one rank; 0: unknown
  std::string source;
};
/// The peak of one rank under a case's precision as far as the configuration says.
Peak configured_peak(const config::Experiment& experiment, config::Precision precision);

/// The hardware file that a sweep on GPUs named `device` has to use beyond what the configuration says: found by the
/// name if the configuration gives no peak of its own. Throws Error if the configured file is of another GPU, or if
/// none is of this one.
std::optional<config::Hardware> hardware_for(const config::Experiment& experiment, const std::string& device);

/// The plan for ranks whose GPU is `device`: with its hardware file, and planned anew where that file says that a case
/// cannot run there or does not fit. Throws Error as hardware_for().
Plan plan_for_device(Plan plan, const std::string& device);

/// The experiment with every `from_model` replaced by the values that the configured model's training step has, from
/// its Program for the baseline's settings on `ranks` ranks: message sizes of the baseline's collective over its group,
/// shapes of matrix products, the shape of attention. The baseline's own value is left out. Throws Error with the
/// place where `from_model` stands if the step has none of them.
config::Experiment with_model_values(const config::Experiment& experiment, int ranks,
                                     const machine::Topology& topology = {});

/// Fills `uses` of every possible case from the same Program. Nothing where the configuration has no model, or its
/// training step cannot run on `ranks` ranks.
void name_uses(Plan& plan);

// Whether a case's workers fit in what the device holds, a GPU's memory or a rank's share of a node.

/// Memory that the largest worker of a case needs at its peak: the Program's arena and what a worker of the backend
/// needs besides (docs/method.md). 0 for a case that was not surveyed.
double planned_memory_bytes(const config::Experiment& experiment, const PlannedCase& planned);

/// Memory of a rank's device.
struct DeviceMemory {
  double bytes = 0;    // 0: unknown
  std::string source;  // "hardware file h100-sxm"
};
/// As far as the configuration says.
DeviceMemory configured_memory(const config::Experiment& experiment);

/// Why a worker that uses so much of its device does not fit under the case's memory_cap; "" if it does, or nothing is
/// known. `used` says what the number is: "needs", "used".
std::string why_too_large(const PlannedCase& planned, double bytes, const DeviceMemory& device, const char* used);

/// Makes the surveyed cases that do not fit impossible, and leaves their blocks out of the schedule. Throws Error if
/// the baseline is one of them.
void refuse_what_does_not_fit(Plan& plan, const std::function<DeviceMemory(const PlannedCase&)>& memory_of);

}  // namespace harness::plan
