#pragma once

#include <string>
#include <vector>

#include "base/text.h"
#include "config/experiment.h"

namespace harness::job {

/// The environment of this process.
NameValues own_environment();

/// The part that can change a measurement and may be published: an allow-list of prefixes (NCCL_, OMP_, UCX_ …).
/// Sorted by name.
NameValues recorded_environment(const NameValues& environment);

/// A worker's environment: the supervisor's own, without what launchers set for their processes and without any tuning
/// variable; then rank 0's tuning variables, so that all ranks have the same; then `forced`; then `request`. Later ones
/// win. The variable that selects a rank's devices (CUDA_VISIBLE_DEVICES) is not replaced.
NameValues worker_environment(const NameValues& own, const NameValues& rank0_recorded, const NameValues& forced,
                              const NameValues& request);

/// Environment variables that contradict the configuration: a line for each that is set and that a variable of the
/// experiment, swept or given in the baseline, would set to another value.
std::vector<std::string> contradictions(const NameValues& environment, const config::Experiment& experiment);

}  // namespace harness::job
