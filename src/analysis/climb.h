#pragma once

#include "analysis/summary.h"

namespace harness::analysis {

/// In a later stage of a climb, the case that has the settings where the climb started; nullptr if there is none.
const CaseSummary* start_of_climb(const store::Result& result, const Summary& summary);

}  // namespace harness::analysis
