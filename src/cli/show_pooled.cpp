#include "cli/show_pooled.h"

#include <deque>
#include <map>
#include <ostream>

#include "analysis/comparison.h"
#include "base/error.h"
#include "cli/labels.h"
#include "cli/view.h"
#include "report/pooled.h"
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
  refuse(!options.interval.empty(), "--interval");
  refuse(!options.cost.per_gpu_hour.empty(), "--cost");
  refuse(!options.cost.run_tokens.empty(), "--run-tokens");
  refuse(!options.cost.currency.empty(), "--currency");
  if (formats.contains(options.format)) return;
  fail("--format {} is about one run; {} files are printed as text, md, csv or json", options.format,
       options.files.size());
}

}  // namespace

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

}  // namespace harness::cli
