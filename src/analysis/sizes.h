#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/summary.h"
#include "store/result.h"

namespace harness::analysis {

// A sweep of the sizes of one operation: each size has a rate, and none is better.

/// Whether every change is a size of the one operation that is measured.
bool sweeps_sizes_alone(const store::Result& result);

/// The baseline and the cases that differ from it in the size alone, the smallest first; those that cannot run, whose
/// bytes the file does not know, come last.
std::vector<const CaseSummary*> by_size(const store::Result& result, const Summary& summary);

/// The mean of the bus bandwidths of these sizes, as the last line of nccl-tests has it. Nothing where fewer than two
/// were measured.
std::optional<double> average_bus_bandwidth(const store::Result& result, const Summary& summary);

/// The blocks of a case that failed. A wrong result fails its block; so does whatever ends a block before its check.
int failed_blocks(const store::Result& result, std::int32_t case_index);

}  // namespace harness::analysis
