#pragma once

#include <optional>
#include <string>
#include <vector>

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

}  // namespace harness::plan
