#pragma once

#include "plan/fit.h"
#include "program/links.h"
#include "store/result.h"
#include "sweep/probe.h"
#include "sweep/recorder.h"

namespace harness::sweep {

// Upper limits of the machine, to compare with what is measured on it.

/// Writes peak_source, memory_bytes_per_s and, where the configuration says it, peak_flops_per_rank of every possible
/// case. A configured peak counts per accelerator.
void fill_peaks(store::Result& result, const plan::Plan& plan);

/// Raises the peaks of the cases to what was measured so far, unless the configuration says what they are. No peak
/// falls: an earlier session may have seen the machine at a quieter moment.
void raise_peaks(Recorder& recorder, const plan::Plan& plan, const Peaks& peaks);

/// Writes link_source and the limit of every point of operation.
void fill_link_limits(store::Result& result, const plan::Plan& plan, const Machine& machine);

/// What a rank of a case may use: of a GPU its hardware file says it; on cpu, the least share of a node's memory.
plan::DeviceMemory memory_of(const config::Experiment& experiment, const plan::PlannedCase& planned,
                             const Machine& machine);

/// The links that carry a case's messages, as far as the configuration or the hardware file states them.
program::Links links_of(const config::Experiment& experiment, const plan::PlannedCase& planned);

}  // namespace harness::sweep
