#pragma once

#include "plan/plan.h"
#include "store/result.h"
#include "sweep/probe.h"
#include "workloads/limits.h"

namespace harness {

// What the machine allows at best, beside what will be measured on it.

/// Writes peak_flops_per_rank of every possible case, peak_source and memory_bytes_per_s. A configured peak counts per
/// accelerator. A measured one is what all ranks of a node reach together, shared out: a case with fewer ranks per node
/// has more of the node to each, up to the threads it uses.
void fill_peaks(Result& result, const Plan& plan, const Machine& machine);

/// Writes link_source and the limit of every point of operation.
void fill_link_limits(Result& result, const Plan& plan, const Machine& machine);

/// The links that carry a case's messages, as far as the configuration or the hardware file states them.
Links links_of(const Experiment& experiment, const PlannedCase& planned);

}  // namespace harness
