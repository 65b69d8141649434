#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/summary.h"
#include "config/frameworks/framework.h"
#include "config/settings.h"
#include "store/result.h"

namespace harness::report {

/// A setting that a sweep proved faster than its baseline, read back from the file and checked like a configuration's.
struct ProvenSetting {
  std::string name;                                              // of the case: variable=value
  std::string variable, value;                                   // the value in canonical form
  config::Settings settings;                                     // with this one value, everything else at its default
  std::vector<std::pair<std::string, std::string>> environment;  // what it becomes in a process's environment
  std::string evidence;                                          // change, interval, rounds, file, commit; one line
  double ratio = 1;                                              // its time over the baseline's
};

struct Proven {
  std::vector<ProvenSetting> settings;  // the fastest value of each variable, in the registry's order
  std::vector<std::string> left_out;    // a line each: what was not proven and why; what a faster value outdid
  std::optional<std::int32_t> only;     // the case that was asked for; without one, all were

  bool is_asked_for(const analysis::CaseSummary& row) const { return !only || row.case_index == *only; }
};

/// The verdict of the sweep on a case: "unresolved, time -1.6 % [-13.1 %, +11.4 %] in 12 rounds", "failed", "not
/// measured".
std::string outcome_of(const analysis::CaseSummary& row);

/// case_name: this case alone, by its name or its short one ("" all). Throws Error when it is not there or not proven,
/// and (exit code 4) when the sweep is unreliable and proves nothing. A value that the registry does not know as it
/// stands is left out.
Proven find_proven(const store::Result& result, const analysis::Summary& summary, const std::string& case_name,
                   const std::string& file);

/// The framework; nothing stands for the environment of a shell.
using ExportFormat = std::optional<config::Framework>;

/// The proven settings as a file for a shell (the environment, megatron, torchtitan), as DeepSpeed's JSON or as Python
/// for PyTorch, each with its evidence; what is not in it is listed with the reason. `file`: what the evidence calls
/// the result file.
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
/// Writes the same file as for proven settings, with every setting that the framework has a word for, and the model.
std::string export_text(const PlannedSettings& planned, ExportFormat format);

/// The text as a word of a script for any POSIX shell. Throws Error for control characters, line breaks included.
std::string script_word(std::string_view text);

/// The configuration of the sweep that follows from a result, as YAML. It is what the file holds (with its --set), but
/// - the baseline takes the fastest proven change: of one variable, or a proven combination;
/// - `combine` gets the other proven changes together, where there are two or more;
/// - lists and combinations lose what is proven slower, failed, could not run, was not honoured, or is in the baseline;
/// - a ladder goes, if the baseline changed: its fixes belong to the former one.
/// Comments at its head say why, each with its interval. Changes of `ranks` are never taken: they say how much hardware
/// there is. `proven`: by find_proven() of the same result; `file`: what comments call the result file.
/// Throws Error if the file holds no configuration that can be read.
std::string next_configuration(const store::Result& result, const analysis::Summary& summary, const Proven& proven,
                               const std::string& file);

/// The profiled step of a case as Chrome's trace events (a JSON object with traceEvents, for ui.perfetto.dev and
/// chrome://tracing): a process per rank, a thread per track of analysis::drawn_step(), a complete event per operation,
/// in microseconds on the clock that all ranks share. The events are those of the PyTorch profiler (Kineto), so that
/// its tools and `harness read` take them: operations are of category "kernel", the step of a rank is a
/// gpu_user_annotation "ProfilerStep#0", and "loading" is the filling of its inputs. Their arguments say what the
/// breakdown of the step needs. One rank of each role is there. Throws Error when there is no such case or no timeline
/// of it.
std::string trace_json(const store::Result& result, const std::string& case_name);

}  // namespace harness::report
