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
  std::error_code ignored;
  if (std::filesystem::equivalent(options.file, options.output, ignored)) {
    fail("-o {} is the result file itself; name another file for the trace", quote(options.output));
  }
  const bool to_terminal = options.output == "-";
  if (!to_terminal) check_output(options.output, options.force);
  const store::Result result = store::read_result(options.file, {.rank_seconds = false, .timeline = true});
  const std::string text = report::trace_json(result, options.case_name);
  if (to_terminal) {
    out << text;
    return 0;
  }
  write_output(options.output, text, options.force);
  err << fmt::format("wrote {}: open it in ui.perfetto.dev or chrome://tracing\n", quote(options.output));
  return 0;
}

}  // namespace harness::cli
