#include <map>
#include <ostream>

#include "analysis/analysis.h"
#include "cli/verbs.h"
#include "report/show.h"
#include "store/result_file.h"

namespace harness {

int show(const ShowOptions& options, std::ostream& out) {
  static const std::map<std::string, Format> formats{
      {"text", Format::text}, {"md", Format::md}, {"csv", Format::csv}, {"json", Format::json}};
  const Result result = read_result(options.file, {.rank_seconds = false, .timeline = false});
  const Summary summary = summarise(result);
  out << show(result, summary, formats.at(options.format));
  return exit_code(summary);
}

}  // namespace harness
