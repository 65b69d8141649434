#pragma once

#include <functional>
#include <string>

#include "plan/plan.h"

namespace harness::plan {

// Whether a case's workers fit in what the device holds, a GPU's memory or a rank's share of a node.

/// Memory that the largest worker of a case needs at its peak: the Program's arena and what a worker of the backend
/// needs besides (docs/method.md). 0 for a case that was not surveyed.
double planned_memory_bytes(config::BackendKind backend, const PlannedCase& planned);

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
