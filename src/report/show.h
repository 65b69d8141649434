#pragma once

#include <optional>
#include <string>

#include "analysis/findings.h"
#include "report/document.h"
#include "store/result.h"

namespace harness::report {

enum class Format { text, md, csv, json };

/// What `show` prints. First line: what moved and how sure we are. Then what is common to all cases, one row per case
/// with its change against the baseline and the verdict, notes and warnings. `cost`: what a training run takes and
/// costs, in a section of its own (not in csv).
std::string show(const store::Result& result, const analysis::Summary& summary, Format format,
                 const std::optional<analysis::CostEstimate>& cost = {});
Document show_document(const store::Result& result, const analysis::Summary& summary,
                       const std::optional<analysis::CostEstimate>& cost = {});

/// The same with where the profiled steps went.
Document breakdown_document(const store::Result& result, const analysis::Findings& findings);
/// Throws Error for csv and json.
std::string show_breakdown(const store::Result& result, const analysis::Findings& findings, Format format);

/// One line per case, full precision, empty where there is no value.
std::string show_csv(const store::Result& result, const analysis::Summary& summary);
/// The same and all that the text says besides; null where there is no value. docs/json.md describes it.
std::string show_json(const store::Result& result, const analysis::Summary& summary,
                      const std::optional<analysis::CostEstimate>& cost = {});

/// A document as text or Markdown. Throws Error for csv and json.
std::string write(const Document& document, Format format);

}  // namespace harness::report
