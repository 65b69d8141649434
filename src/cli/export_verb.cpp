#include <filesystem>
#include <map>
#include <ostream>

#include "analysis/summary.h"
#include "cli/verbs.h"
#include "report/export.h"
#include "store/result_file.h"

namespace harness {

int export_settings(const ExportOptions& options, std::ostream& out) {
  static const std::map<std::string, ExportFormat> formats{{"env", ExportFormat::env},
                                                           {"megatron", ExportFormat::megatron},
                                                           {"deepspeed", ExportFormat::deepspeed},
                                                           {"pytorch", ExportFormat::pytorch}};
  const Result result = read_result(options.file, {.rank_seconds = false, .timeline = false});
  const Summary summary = summarise(result);
  const std::string name = std::filesystem::path(options.file).filename().string();
  const Proven proven = find_proven(result, summary, options.case_name, name);
  out << export_text(result, proven, name, formats.at(options.format));
  return 0;
}

}  // namespace harness
