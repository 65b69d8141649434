#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/survey.h"
#include "store/result.h"

namespace harness {

/// A plan with what is known of each case before it runs. surveys[i] belongs to plan.cases[i]; empty (roles == 0) for
/// an impossible case.
struct Prepared {
  Plan plan;
  std::vector<Survey> surveys;
  std::vector<std::string> only;  // what prepare() was asked for
};

/// Plans and surveys. Pure but for reading `path`. Throws Error.
Prepared prepare(const Experiment& experiment, int ranks, const std::vector<std::string>& only);

/// What the largest worker of a case will need at its peak: the Program's arena and what a worker costs besides
/// (libraries, communicators; docs/method.md).
double planned_memory_bytes(const Prepared& prepared, std::size_t case_index);

/// Dense peak of one rank under a case's precision as far as the configuration says; 0 if it does not. `source` says
/// where it came from.
double configured_peak_flops(const Experiment& experiment, Precision precision, std::string& source);

/// The hardware file that a sweep on GPUs named `device` has to use beyond what the configuration says: found by the
/// name if the configuration gives no peak of its own. Throws Error if the configured file is of another GPU, or if
/// none is of this one.
std::optional<Hardware> hardware_for(const Experiment& experiment, const std::string& device);

/// The Result as the plan knows it: cases, blocks in order, configuration; nothing measured yet.
Result planned_result(const Prepared& prepared);

}  // namespace harness
