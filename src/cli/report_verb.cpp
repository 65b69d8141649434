#include <algorithm>
#include <filesystem>
#include <ostream>

#include "base/error.h"
#include "cli/cost_options.h"
#include "cli/output_file.h"
#include "cli/verbs.h"
#include "explain/explain.h"
#include "report/page/page.h"
#include "store/result_file.h"
#include "traces/page.h"

namespace harness::cli {
namespace {

// Beside the file: results/x.h5 becomes results/x.html, rank0.json.gz rank0.html.
std::string default_output(const ReportOptions& options) {
  std::filesystem::path path(options.files.front());
  if (path.extension() == ".gz") path.replace_extension();
  path.replace_extension(options.format);
  return path.string();
}

report::Document report_on_result(const ReportOptions& options) {
  if (options.files.size() > 1)
    fail(
        "report writes a page on one result file, or on the traces of one job; {} is no trace; `harness compare` "
        "takes several results",
        quote(options.files.front()));
  const store::Result result = store::read_result(options.files.front());
  analysis::Findings findings = analysis::find_all(result);
  findings.cost = cost_estimate(options.cost, result, findings.summary);
  findings.explanation = explain::explain(result);
  return page::make_report(result, findings);
}

}  // namespace

int report(const ReportOptions& options, std::ostream& out) {
  const std::string path = options.output.empty() ? default_output(options) : options.output;
  for (const std::string& file : options.files) {
    std::error_code ignored;
    if (std::filesystem::equivalent(path, file, ignored))
      fail("the report would overwrite {} itself: name another file with -o", quote(file));
  }
  if (path != "-") check_output(path, options.force);  // a name that is taken shows before the work, not after it
  const bool traces = std::ranges::any_of(options.files, traces::is_trace_file);
  const report::Document document =
      traces ? traces::make_report(traces::read_traces(options.files)) : report_on_result(options);
  const std::string text = options.format == "md" ? report::write_markdown(document) : page::page(document);
  if (path == "-") {
    out << text;
    return 0;
  }
  write_output(path, text, options.force);
  out << "report: " << path << "\n";
  return 0;
}

}  // namespace harness::cli
