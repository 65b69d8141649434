#pragma once

#include "plan/plan.h"
#include "store/result.h"
#include "sweep/probe.h"
#include "workloads/limits.h"

namespace harness::sweep {

// Upper limits of the machine, to compare with what is measured on it.

/// Writes peak_flops_per_rank of every possible case, peak_source and memory_bytes_per_s. A configured peak counts per
/// accelerator. A measured one is what all ranks of a node reach together, shared out: a case with fewer ranks per node
/// has more of the node to each, up to the threads it uses.
void fill_peaks(store::Result& result, const plan::Plan& plan, const Machine& machine);

/// Writes link_source and the limit of every point of operation.
void fill_link_limits(store::Result& result, const plan::Plan& plan, const Machine& machine);

/// The links that carry a case's messages, as far as the configuration or the hardware file states them.
workloads::Links links_of(const config::Experiment& experiment, const plan::PlannedCase& planned);

}  // namespace harness::sweep
