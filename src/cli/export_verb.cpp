#include <filesystem>
#include <map>
#include <ostream>

#include "analysis/summary.h"
#include "cli/verbs.h"
#include "report/export.h"
#include "store/result_file.h"

namespace harness::cli {

int export_settings(const ExportOptions& options, std::ostream& out) {
  static const std::map<std::string, report::ExportFormat> formats{{"env", report::ExportFormat::env},
                                                                   {"megatron", report::ExportFormat::megatron},
                                                                   {"deepspeed", report::ExportFormat::deepspeed},
                                                                   {"torchtitan", report::ExportFormat::torchtitan},
                                                                   {"pytorch", report::ExportFormat::pytorch}};
  const store::Result result = store::read_result(options.file, {.rank_seconds = false, .timeline = false});
  const analysis::Summary summary = analysis::summarise(result);
  const std::string name = std::filesystem::path(options.file).filename().string();
  const report::Proven proven = report::find_proven(result, summary, options.case_name, name);
  if (options.format == "harness") {
    out << report::next_configuration(result, summary, proven, options.case_name, name);
    return 0;
  }
  out << report::export_text(result, proven, name, formats.at(options.format));
  return 0;
}

}  // namespace harness::cli
