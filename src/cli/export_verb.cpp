#include <filesystem>
#include <map>
#include <ostream>

#include "analysis/summary.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/verbs.h"
#include "config/experiment.h"
#include "report/case_label.h"
#include "report/export.h"
#include "store/result_file.h"

namespace harness::cli {

namespace {

// A case of a configuration, of which nothing is known but that it is planned.
report::PlannedSettings planned_case(const std::string& path, const std::string& case_name) {
  const config::Experiment experiment = config::load_experiment(path, {});
  report::PlannedSettings planned{.name = "baseline", .settings = experiment.baseline};
  if (!case_name.empty() && case_name != planned.name) {
    std::vector<std::string> names{planned.name};
    for (const config::Change& change : experiment.changes) {
      names.push_back(config::case_name(change));
      if (names.back() != case_name && report::short_name(names.back()) != case_name) continue;
      planned.name = names.back();
      planned.settings = change.settings;
    }
    if (planned.name == "baseline")
      fail("{}: there is no case {}{}", path, quote(case_name), did_you_mean(nearest(case_name, names)));
  }
  if (experiment.baseline.workload == "gpt") planned.model = experiment.model;
  planned.about = {fmt::format("All settings of {} in {}: planned, not measured.", planned.name, path)};
  return planned;
}

}  // namespace

int export_settings(const ExportOptions& options, std::ostream& out) {
  static const std::map<std::string, report::ExportFormat> formats{{"env", report::ExportFormat::env},
                                                                   {"megatron", report::ExportFormat::megatron},
                                                                   {"deepspeed", report::ExportFormat::deepspeed},
                                                                   {"torchtitan", report::ExportFormat::torchtitan},
                                                                   {"pytorch", report::ExportFormat::pytorch}};
  const bool is_next = options.format == "harness";
  if (options.file.ends_with(".yaml") || options.file.ends_with(".yml")) {
    if (is_next)
      fail("{} is a configuration already; --format says for which framework its settings are", options.file);
    out << report::export_text(planned_case(options.file, options.case_name), formats.at(options.format));
    return 0;
  }
  const store::Result result = store::read_result(options.file, {.rank_seconds = false, .timeline = false});
  const analysis::Summary summary = analysis::summarise(result);
  const std::string name = std::filesystem::path(options.file).filename().string();
  if (!is_next && !options.case_name.empty()) {
    out << report::export_text(report::planned_settings(result, summary, options.case_name, name),
                               formats.at(options.format));
    return 0;
  }
  const report::Proven proven = report::find_proven(result, summary, options.case_name, name);
  if (is_next) {
    out << report::next_configuration(result, summary, proven, options.case_name, name);
  } else {
    out << report::export_text(result, proven, name, formats.at(options.format));
  }
  return 0;
}

}  // namespace harness::cli
