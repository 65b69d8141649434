#pragma once

#include <string>
#include <vector>

#include "analysis/summary.h"
#include "store/result.h"

namespace harness::report {

/// What holds for the whole table of cases: backend, model, common settings, the formulas and where the peak comes
/// from. A paragraph each.
std::vector<std::string> context(const store::Result& result, const analysis::Summary& summary);

/// The same for a first look, in one paragraph: what was measured, on what, by how much a verdict must clear the
/// baseline, and of a prediction how far it can be trusted.
std::vector<std::string> short_context(const store::Result& result, const analysis::Summary& summary);

/// The quantity that changes are changes of: "step time", "time per byte on the bus" …
std::string what_changes(const store::Result& result);
/// Its words behind "12 % slower": " per byte on the bus"; "" where it is the step time.
std::string per_what(const store::Result& result);
/// The measured thing in a word or two: the model's name, or the workload's.
std::string subject_of(const store::Result& result);

/// The first of those paragraphs says what the numbers of a backend are worth.
std::string backend_line(const store::Result& result);

}  // namespace harness::report
