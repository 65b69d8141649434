#include <map>
#include <ostream>

#include "analysis/findings.h"
#include "base/error.h"
#include "cli/cost_options.h"
#include "cli/verbs.h"
#include "report/show.h"
#include "store/result_file.h"

namespace harness {

int show(const ShowOptions& options, std::ostream& out) {
  static const std::map<std::string, Format> formats{
      {"text", Format::text}, {"md", Format::md}, {"csv", Format::csv}, {"json", Format::json}};
  const Format format = formats.at(options.format);
  if (options.breakdown && format != Format::text && format != Format::md) {
    fail("--breakdown prints text or md, not {}; the file itself holds the numbers (docs/file-format.md)",
         options.format);
  }
  const SummaryOptions how{.estimator = estimator_named(options.interval)};
  const Result result = read_result(options.file, {.rank_seconds = options.breakdown, .timeline = options.breakdown});
  if (!options.breakdown) {
    const Summary summary = summarise(result, how);
    out << show(result, summary, format, cost_estimate(options.cost, result, summary));
    return exit_code(summary);
  }
  Findings findings = find_all(result, how);
  findings.cost = cost_estimate(options.cost, result, findings.summary);
  out << show_breakdown(result, findings, format);
  return exit_code(findings.summary);
}

}  // namespace harness
