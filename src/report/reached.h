#pragma once

#include <string>

#include "analysis/summary.h"
#include "store/result.h"

namespace harness::report {

/// What a sweep of one operation reached at its sizes, in a sentence: "Most busbw: 0.284 GB/s at 16 MiB; 0.069 GB/s at
/// 1 MiB, the baseline; 4 KiB takes 15.2 ms." "" for training, and where nothing was measured.
std::string what_was_reached(const store::Result& result, const analysis::Summary& summary);

}  // namespace harness::report
