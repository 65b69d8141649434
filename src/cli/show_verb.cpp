#include <chrono>
#include <deque>
#include <map>
#include <ostream>
#include <thread>

#include "analysis/comparison.h"
#include "analysis/findings.h"
#include "base/error.h"
#include "cli/cost_options.h"
#include "cli/follow.h"
#include "cli/verbs.h"
#include "cli/view.h"
#include "explain/explain.h"
#include "report/pooled.h"
#include "report/show.h"
#include "store/result_file.h"

namespace harness::cli {

namespace {

const std::map<std::string, report::Format> formats{{"text", report::Format::text},
                                                    {"md", report::Format::md},
                                                    {"csv", report::Format::csv},
                                                    {"json", report::Format::json}};

void refuse_what_is_about_one_run(const ShowOptions& options) {
  const auto refuse = [&](bool given, const char* option) {
    if (!given) return;
    fail("{} is about one run, but {} files were given: leave it out, or show them one by one", option,
         options.files.size());
  };
  refuse(options.breakdown, "--breakdown");
  refuse(options.follow, "--follow");
  refuse(!options.cost.per_gpu_hour.empty(), "--cost");
  refuse(!options.cost.run_tokens.empty(), "--run-tokens");
  refuse(!options.cost.currency.empty(), "--currency");
  if (formats.contains(options.format)) return;
  fail("--format {} is about one run; {} files are printed as text, md, csv or json", options.format,
       options.files.size());
}

// Two files or more: runs of one configuration.
int show_pooled(const ShowOptions& options, std::ostream& out) {
  refuse_what_is_about_one_run(options);
  std::deque<store::Result> results;
  std::deque<analysis::Summary> summaries;
  report::PooledReport report;
  const auto labels = labels_of(options.files);
  for (std::size_t i = 0; i < options.files.size(); ++i) {
    results.push_back(store::read_result(options.files[i], {.rank_seconds = false, .timeline = false}));
    summaries.push_back(analysis::summarise(results.back()));
    report.files.push_back({labels[i], &results.back(), &summaries.back()});
  }
  report.pool = analysis::pool_runs(report.files);
  report.differences = analysis::find_differences(report.files);
  report.unreliable = analysis::why_unreliable(report.files);
  if (options.format == "text") {
    out << view(report::pooled_document(report), options.view, out);
  } else {
    out << report::show(report, formats.at(options.format));
  }
  return analysis::exit_code(report.pool, report.files);
}

}  // namespace

int show_once(const ShowOptions& options, std::ostream& out) {
  if (options.breakdown && options.format != "text" && options.format != "md" && options.format != "json") {
    fail("--breakdown prints text, md or json, not {}; the file itself holds the numbers (docs/file-format.md)",
         options.format);
  }
  const store::Result result = store::read_result(options.files.at(0), {.timeline = options.breakdown});
  if (!options.breakdown) {
    const analysis::Summary summary = analysis::summarise(result);
    const auto cost = cost_estimate(options.cost, result, summary);
    if (options.format == "text") {
      out << view(report::show_document(result, summary, cost), options.view, out);
    } else if (options.format == "long-csv") {
      out << report::show_long_csv(result, summary);
    } else {
      out << report::show(result, summary, formats.at(options.format), cost);
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
  const report::Document document = report::breakdown_document(result, findings);
  if (options.format == "text") {
    out << view(document, options.view, out);
  } else {
    out << report::write(document, formats.at(options.format));
  }
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
