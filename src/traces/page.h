#pragma once

#include <vector>

#include "report/document.h"
#include "traces/read.h"

namespace harness::traces {

/// The report on one job's traces, or on those of before and after a change: where the step goes, its timeline, the
/// ranks that the others wait for, collectives and kernels. Texts hold names of the files as they are: the writers of a
/// Document escape them.
report::Document make_report(const std::vector<Report>& reports);

}  // namespace harness::traces
