#include <filesystem>
#include <ostream>

#include "base/error.h"
#include "cli/cost_options.h"
#include "cli/output_file.h"
#include "cli/verbs.h"
#include "explain/explain.h"
#include "report/page/page.h"
#include "store/result_file.h"

namespace harness::cli {
namespace {

// Beside the result: results/x.h5 becomes results/x.html.
std::string default_output(const ReportOptions& options) {
  std::filesystem::path path(options.file);
  path.replace_extension(options.format);
  return path.string();
}

}  // namespace

int report(const ReportOptions& options, std::ostream& out) {
  const std::string path = options.output.empty() ? default_output(options) : options.output;
  std::error_code ignored;
  if (std::filesystem::equivalent(path, options.file, ignored)) {
    fail("the report would overwrite the result file {} itself: name another file with -o", options.file);
  }
  if (path != "-") check_output(path, options.force);  // a name that is taken shows before the work, not after it
  const store::Result result = store::read_result(options.file);
  analysis::Findings findings = analysis::find_all(result);
  findings.cost = cost_estimate(options.cost, result, findings.summary);
  findings.explanation = explain::explain(result);
  const report::Document document = page::make_report(result, findings);
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
