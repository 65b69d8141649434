#include <chrono>
#include <ostream>
#include <thread>

#include "analysis/findings.h"
#include "base/error.h"
#include "cli/cost_options.h"
#include "cli/follow.h"
#include "cli/verbs.h"
#include "cli/view.h"
#include "explain/explain.h"
#include "report/show.h"
#include "store/result_file.h"

namespace harness::cli {

int show_once(const ShowOptions& options, std::ostream& out) {
  if (options.breakdown && options.format != "text" && options.format != "md" && options.format != "json") {
    fail("--breakdown prints text, md or json, not {}; the file itself holds the numbers (docs/file-format.md)",
         options.format);
  }
  const store::Result result = store::read_result(options.files.at(0), {.timeline = options.breakdown});
  const report::Detail detail = options.verbose ? report::Detail::full : report::Detail::brief;
  if (!options.breakdown) {
    const analysis::Summary summary = analysis::summarise(result);
    const auto cost = cost_estimate(options.cost, result, summary);
    if (options.format == "csv") {
      out << report::show_csv(result, summary);
    } else if (options.format == "long-csv") {
      out << report::show_long_csv(result, summary);
    } else if (options.format == "json") {
      out << report::show_json(result, summary, cost);
    } else {
      print(report::show_document(result, summary, cost, detail), options.format, options.view, out);
    }
    return analysis::exit_code(summary);
  }
  analysis::Findings findings = analysis::find_all(result);
  findings.cost = cost_estimate(options.cost, result, findings.summary);
  findings.explanation = explain::explain(result);
  if (options.format == "json") {
    out << report::show_json(result, findings.summary, findings.cost, &*findings.explanation);
    return analysis::exit_code(findings.summary);
  }
  print(report::breakdown_document(result, findings, {options.cases, detail}), options.format, options.view, out);
  return analysis::exit_code(findings.summary);
}

int show(const ShowOptions& options, std::ostream& out, std::ostream& err) {
  if (options.files.size() > 1)
    fail(
        "show takes one result file, but {} were given; `harness compare` says what differs between two, and what "
        "three or more runs of one configuration prove together",
        options.files.size());
  if (!options.follow) return show_once(options, out);
  if (options.format != "text") fail("--follow prints text, not {}", options.format);
  constexpr std::chrono::seconds between_looks{2};
  return follow(
      options, out, err, [&] { std::this_thread::sleep_for(between_looks); }, is_terminal(out));
}

}  // namespace harness::cli
