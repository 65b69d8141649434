#pragma once

#include <string>
#include <vector>

#include "analysis/findings.h"
#include "report/table.h"
#include "store/result.h"

namespace harness {

/// A row per part: what it takes beside the baseline's (nullptr: it is the baseline), what it costs in points of MFU,
/// what it would take at the machine's limit, and where there are several roles what it takes on each.
Table breakdown_table(const StepFindings& step, const StepFindings* baseline);
/// The ranks that came last, worst first.
Table straggler_table(const Stragglers& stragglers, std::size_t rows);
/// What the table does not say: parts that are not present, what is hidden, the critical rank, the bottleneck, its
/// levers, the rules that fired. A paragraph each.
std::vector<std::string> breakdown_words(const Result& result, const StepFindings& step);

std::string breakdown_text(const Result& result, const Findings& findings);
std::string breakdown_markdown(const Result& result, const Findings& findings);

}  // namespace harness
