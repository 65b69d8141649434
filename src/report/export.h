#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/summary.h"
#include "base/text.h"
#include "config/frameworks/framework.h"
#include "config/settings.h"
#include "store/result.h"

namespace harness::report {

/// A setting to write for a framework, checked like a configuration's.
struct ExportedSetting {
  std::string variable, value;  // the value in canonical form
  config::Settings settings;    // that hold it
  NameValues environment;       // what it becomes in a process's environment
  std::string evidence;         // what is known of it, a line: change, interval, rounds, file, commit
  double ratio = 1;             // of a proven one: its time over the baseline's
  bool is_default = false;      // says nothing where a framework has no word for it
};

struct Export {
  std::vector<std::string> about;         // where it is from, a line each
  std::vector<ExportedSetting> settings;  // in the registry's order
  std::vector<std::string> left_out;      // a line each: what was not proven and why; what a faster value outdid
  std::optional<config::Model> model;     // nothing where single operations run
  std::optional<std::int32_t> only;       // of proven ones: the case that was asked for; without one, all were

  bool is_asked_for(const analysis::CaseSummary& row) const { return !only || row.case_index == *only; }
};

/// Finds what a sweep proves faster than its baseline: the fastest value of each variable. case_name: this case alone,
/// by its name or its short one ("" all). `file`: what the evidence calls the result file. Throws Error when the case
/// is not there or not proven, and (exit code 4) when the sweep is unreliable and proves nothing. A value that the
/// registry does not know as it stands is left out.
Export find_proven(const store::Result& result, const analysis::Summary& summary, const std::string& case_name,
                   const std::string& file);

/// All settings of a case as it was planned, whatever is proven of it. `about`: lines on top.
Export all_settings(const config::Settings& settings, std::optional<config::Model> model,
                    std::vector<std::string> about);
/// The settings of the case of this name, or of this short name. Throws Error where there is none, or where this
/// version cannot read its settings.
Export planned_case(const store::Result& result, const analysis::Summary& summary, const std::string& case_name,
                    const std::string& file);

/// The framework; nothing stands for the environment of a shell.
using ExportFormat = std::optional<config::Framework>;

/// A file for a shell (the environment, megatron, torchtitan), DeepSpeed's JSON or Python for PyTorch, each setting
/// with its evidence; what is not in it is listed with the reason.
std::string export_text(const Export& exported, ExportFormat format);

/// The text as a word of a script for any POSIX shell. Throws Error for control characters, line breaks included.
std::string script_word(std::string_view text);

/// The configuration of the sweep that follows from a result, as YAML. It is what the file holds (with its --set), but
/// - the baseline takes the fastest proven change: of one variable, or a proven combination;
/// - lists lose what is proven slower, failed, could not run, was not honoured, or is in the baseline;
/// - `combine` and a ladder go, if the baseline changed: they belong to the former one;
/// - `combine` gets the other proven changes together, where there are two or more.
/// Comments at its head say why, each with its interval. Changes of `ranks` are never taken: they say how much hardware
/// there is. `proven`: by find_proven() of the same result; `file`: what comments call the result file.
/// Throws Error if the file holds no configuration that can be read.
std::string next_configuration(const store::Result& result, const analysis::Summary& summary, const Export& proven,
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
