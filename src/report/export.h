#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/proven.h"

namespace harness::report {

enum class ExportFormat { env, megatron, deepspeed, torchtitan, pytorch };

/// The proven settings as a file for a shell (env, megatron, torchtitan), as DeepSpeed's JSON or as Python for PyTorch,
/// each with its evidence; what is not in it is listed with the reason. `file`: what the evidence calls the result
/// file.
std::string export_text(const store::Result& result, const Proven& proven, const std::string& file,
                        ExportFormat format);

/// All settings of one case as it was planned, whatever is proven of it.
struct PlannedSettings {
  std::string name;                     // of the case
  std::vector<std::string> about = {};  // where it is from and what is known of it, a line each
  config::Settings settings;
  std::optional<config::Model> model = {};  // nothing where single operations run
};
/// The case of this name, or of this short name. Throws Error where there is none, or where this version cannot read
/// its settings. `file`: what the lines on top call the result file.
PlannedSettings planned_settings(const store::Result& result, const analysis::Summary& summary,
                                 const std::string& case_name, const std::string& file);
/// The same file as of what is proven, with every setting that the framework has a word for, and the model.
std::string export_text(const PlannedSettings& planned, ExportFormat format);

/// The text as a word of a script for any POSIX shell. Throws Error for control characters, line breaks included.
std::string script_word(std::string_view text);

/// The configuration of the sweep that follows from a result, as YAML. It is what the file holds (with its --set), but
/// - the baseline takes the fastest proven change: of one variable, or a proven combination;
/// - `combine` gets the other proven changes together, where there are two or more;
/// - lists and combinations lose what is proven slower, failed, could not run, was not honoured, or is in the baseline;
/// - a ladder goes, if the baseline changed: its fixes belong to the former one.
/// Comments at its head say why, each with its interval. Changes of `ranks` are never taken: they say how much hardware
/// there is. `proven`: by find_proven() of the same result and case; `file`: what comments call the result file.
/// Throws Error if the file holds no configuration that can be read.
std::string next_configuration(const store::Result& result, const analysis::Summary& summary, const Proven& proven,
                               const std::string& case_name, const std::string& file);

}  // namespace harness::report
