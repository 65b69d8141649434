#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/findings.h"
#include "analysis/summary.h"
#include "report/document.h"
#include "report/sections.h"
#include "store/result.h"

namespace harness::report {

/// The document of `show`. First line: what moved and how sure we are. Then one row per case with its change against
/// the baseline and the verdict, notes, warnings, and what is common to all cases. `cost`: what a training run takes
/// and costs, in a section of its own.
Document show_document(const store::Result& result, const analysis::Summary& summary,
                       const std::optional<analysis::CostEstimate>& cost = {}, Detail detail = Detail::brief);

/// Which profiled steps a breakdown shows: the baseline's, and those of `cases` (short names, too). Without any, that
/// of the best case; in full detail all.
struct ShownSteps {
  std::vector<std::string> cases = {};
  Detail detail = Detail::brief;
};
/// That text, and where the profiled steps went. Throws Error for a case that is not there.
Document breakdown_document(const store::Result& result, analysis::Findings findings, const ShownSteps& shown = {});

/// One line per case, full precision, empty where there is no value.
std::string show_csv(const store::Result& result, const analysis::Summary& summary);
/// One line per number: run, created, name, host, case, metric, value, low, high. The lines of many files, below one
/// head, are one table for pandas or Grafana. Metrics have the keys of JSON; values are in SI units; low and high are
/// the interval of those that have one. docs/json.md describes it.
std::string show_long_csv(const store::Result& result, const analysis::Summary& summary);
/// All that show_csv() and the text say; null where there is no value. docs/json.md describes it. `explanation`: what
/// steps take beside what they are predicted to take, or nullptr.
std::string show_json(const store::Result& result, const analysis::Summary& summary,
                      const std::optional<analysis::CostEstimate>& cost = {},
                      const analysis::Explanation* explanation = nullptr);

/// The result and how sure it is, in one sentence.
std::string headline(const store::Result& result, const analysis::Summary& summary);

}  // namespace harness::report
