#include <map>
#include <ostream>

#include "analysis/findings.h"
#include "base/error.h"
#include "cli/cost_options.h"
#include "cli/verbs.h"
#include "report/show.h"
#include "store/result_file.h"

namespace harness::cli {

int show(const ShowOptions& options, std::ostream& out) {
  static const std::map<std::string, report::Format> formats{{"text", report::Format::text},
                                                             {"md", report::Format::md},
                                                             {"csv", report::Format::csv},
                                                             {"json", report::Format::json}};
  const report::Format format = formats.at(options.format);
  if (options.breakdown && format != report::Format::text && format != report::Format::md) {
    fail("--breakdown prints text or md, not {}; the file itself holds the numbers (docs/file-format.md)",
         options.format);
  }
  analysis::SummaryOptions how;
  if (!options.interval.empty()) how.estimator = analysis::estimator_named(options.interval);
  const store::Result result =
      store::read_result(options.file, {.rank_seconds = options.breakdown, .timeline = options.breakdown});
  if (!options.breakdown) {
    const analysis::Summary summary = analysis::summarise(result, how);
    out << report::show(result, summary, format, cost_estimate(options.cost, result, summary));
    return analysis::exit_code(summary);
  }
  analysis::Findings findings = analysis::find_all(result, how);
  findings.cost = cost_estimate(options.cost, result, findings.summary);
  out << report::show_breakdown(result, findings, format);
  return analysis::exit_code(findings.summary);
}

}  // namespace harness::cli
