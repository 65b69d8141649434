#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/differences.h"

namespace harness::analysis {

/// Why files are no runs of one configuration, a sentence each; empty: they are. Repeats agree in workload, backend,
/// model, number of ranks, the settings of the baseline and those of each case that two of them share, and none has
/// changes that no other has without sharing any. Machine, software, seed, rounds and what a configuration leaves out
/// may differ: find_differences() lists them.
std::vector<std::string> why_no_repeats(std::span<const ComparedFile> files);

}  // namespace harness::analysis
