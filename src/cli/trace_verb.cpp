#include <fmt/format.h>

#include <filesystem>
#include <ostream>

#include "base/error.h"
#include "base/text.h"
#include "cli/output_file.h"
#include "cli/verbs.h"
#include "report/trace.h"
#include "store/result_file.h"

namespace harness::cli {

int trace(const TraceOptions& options, std::ostream& out, std::ostream& err) {
  std::string path = options.output;
  if (path.empty()) path = std::filesystem::path(options.file).replace_extension(".trace.json").string();
  std::error_code ignored;
  if (std::filesystem::equivalent(options.file, path, ignored)) {
    fail("-o {} is the result file itself; name another file for the trace", quote(path));
  }
  const bool to_terminal = path == "-";
  if (!to_terminal) check_output(path, options.force);
  const store::Result result = store::read_result(options.file, {.rank_seconds = false, .timeline = true});
  const std::string text = report::trace_json(result, options.case_name);
  if (to_terminal) {
    out << text;
    return 0;
  }
  write_output(path, text, options.force);
  err << fmt::format("wrote {}: open it in ui.perfetto.dev or chrome://tracing\n", quote(path));
  return 0;
}

}  // namespace harness::cli
