#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/bottleneck.h"
#include "analysis/breakdown.h"
#include "analysis/stragglers.h"
#include "analysis/waterfall.h"
#include "report/table.h"
#include "store/result.h"

namespace harness {

/// Everything that the profiled steps of a result say: what `show --breakdown` prints.
struct StepAnalysis {
  struct One {
    CaseBreakdown breakdown;
    std::optional<Waterfall> fall;
    Bottleneck bottleneck;
    std::vector<std::string> rules;
  };
  std::vector<One> cases;
  Stragglers stragglers;
  std::vector<std::string> rules;  // about the sweep as a whole
};
StepAnalysis analyse_steps(const Result& result, const Summary& summary);

/// A row per part: what it takes beside the baseline's (nullptr: it is the baseline), what it costs in points of MFU,
/// what it would take at the machine's limit, and where there are several roles what it takes on each.
Table breakdown_table(const StepAnalysis::One& one, const StepAnalysis::One* baseline);
/// The ranks that came last, worst first.
Table straggler_table(const Stragglers& stragglers, std::size_t rows);
/// What the table does not say: parts that are not present, what is hidden, the critical rank, the bottleneck, its
/// levers, the rules that fired. A paragraph each.
std::vector<std::string> breakdown_words(const Result& result, const StepAnalysis::One& one);

std::string breakdown_text(const Result& result, const Summary& summary);
std::string breakdown_markdown(const Result& result, const Summary& summary);

}  // namespace harness
