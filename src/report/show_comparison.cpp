#include "report/show_comparison.h"

#include <algorithm>

#include "base/error.h"

namespace harness::report {

bool ComparisonReport::nothing_in_common() const {
  return std::ranges::all_of(comparisons, [](const analysis::Comparison& pair) { return pair.comparisons == 0; }) &&
         std::ranges::all_of(reproductions, [](const analysis::Reproduction& pair) { return pair.changes.empty(); });
}

std::string show(const ComparisonReport& report, Format format) {
  if (format == Format::json) return comparison_json(report);
  if (format == Format::csv) fail("compare has no format csv; allowed: text, md, json");
  return write(comparison_document(report), format);
}

}  // namespace harness::report
