#include <chrono>
#include <map>
#include <ostream>
#include <thread>

#include "analysis/findings.h"
#include "base/error.h"
#include "cli/cost_options.h"
#include "cli/follow.h"
#include "cli/show_pooled.h"
#include "cli/verbs.h"
#include "cli/view.h"
#include "report/checks.h"
#include "report/show.h"
#include "store/result_file.h"

namespace harness::cli {

namespace {

// Formats that are not of one document.
bool print_special(const std::string& format, const store::Result& result, const analysis::Summary& summary,
                   std::ostream& out) {
  if (format == "long-csv") {
    out << report::show_long_csv(result, summary);
  } else if (format == "junit") {
    out << report::write_junit(report::checks_of(result, summary));
  } else if (format == "github") {
    out << report::write_github(report::checks_of(result, summary));
  } else {
    return false;
  }
  return true;
}

}  // namespace

int show_once(const ShowOptions& options, std::ostream& out) {
  static const std::map<std::string, report::Format> formats{{"text", report::Format::text},
                                                             {"md", report::Format::md},
                                                             {"csv", report::Format::csv},
                                                             {"json", report::Format::json}};
  if (options.breakdown && options.format != "text" && options.format != "md") {
    fail("--breakdown prints text or md, not {}; the file itself holds the numbers (docs/file-format.md)",
         options.format);
  }
  analysis::SummaryOptions how;
  if (!options.interval.empty()) how.estimator = analysis::estimator_named(options.interval);
  const store::Result result =
      store::read_result(options.files.at(0), {.rank_seconds = options.breakdown, .timeline = options.breakdown});
  if (!options.breakdown) {
    const analysis::Summary summary = analysis::summarise(result, how);
    const auto cost = cost_estimate(options.cost, result, summary);
    if (options.format == "text") {
      out << view(report::show_document(result, summary, cost), options.view, out);
    } else if (!print_special(options.format, result, summary, out)) {
      out << report::show(result, summary, formats.at(options.format), cost);
    }
    return analysis::exit_code(summary);
  }
  analysis::Findings findings = analysis::find_all(result, how);
  findings.cost = cost_estimate(options.cost, result, findings.summary);
  const report::Document document = report::breakdown_document(result, findings);
  out << (options.format == "text" ? view(document, options.view, out)
                                   : report::write(document, formats.at(options.format)));
  return analysis::exit_code(findings.summary);
}

int show(const ShowOptions& options, std::ostream& out, std::ostream& err) {
  if (options.files.size() > 1) return show_pooled(options, out);
  if (!options.follow) return show_once(options, out);
  if (options.format != "text") fail("--follow prints text, not {}", options.format);
  constexpr std::chrono::seconds between_looks{2};
  return follow(
      options, out, err, [&] { std::this_thread::sleep_for(between_looks); }, is_terminal(out));
}

}  // namespace harness::cli
