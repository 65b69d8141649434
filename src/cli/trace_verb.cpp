#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <ostream>

#include "base/error.h"
#include "base/text.h"
#include "cli/verbs.h"
#include "report/trace.h"
#include "store/result_file.h"

namespace harness::cli {

int trace(const TraceOptions& options, std::ostream& err) {
  std::error_code ignored;
  if (std::filesystem::equivalent(options.file, options.output, ignored)) {
    fail("-o {} is the result file itself; name another file for the trace", quote(options.output));
  }
  const store::Result result = store::read_result(options.file, {.rank_seconds = false, .timeline = true});
  const std::string text = report::trace_json(result, options.case_name);
  std::ofstream out(options.output, std::ios::binary);
  out << text << std::flush;
  if (!out) fail("cannot write {}: check that its directory exists and that the disk has space", quote(options.output));
  err << fmt::format("wrote {}: open it in ui.perfetto.dev or chrome://tracing\n", quote(options.output));
  return 0;
}

}  // namespace harness::cli
