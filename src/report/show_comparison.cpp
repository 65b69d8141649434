#include "report/show_comparison.h"

#include "base/error.h"

namespace harness::report {

std::string show(const ComparisonReport& report, Format format) {
  if (format == Format::json) return comparison_json(report);
  if (format == Format::csv) fail("compare has no format csv; allowed: text, md, json");
  return write(comparison_document(report), format);
}

}  // namespace harness::report
