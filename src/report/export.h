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

/// A setting to export, validated like one of a configuration.
struct ExportedSetting {
  std::string variable, value;  // the value in canonical form
  config::Settings settings;    // settings that hold this value
  NameValues environment;       // the environment variables that it sets
  std::string evidence;         // one line of evidence: change, interval, rounds, file, commit
  double ratio = 1;             // for a proven setting: its time relative to the baseline's
  bool is_default = false;      // omitted without a remark if the framework has no such option
};

struct Export {
  std::vector<std::string> about;         // the source, a line each
  std::vector<ExportedSetting> settings;  // in the registry's order
  std::vector<std::string> left_out;      // a line each: not proven and why; values that a faster one beats
  std::optional<config::Model> model;     // empty if the workload is a single operation
  std::optional<std::int32_t> only;       // the requested case, if only one was; else all proven cases

  bool is_asked_for(const analysis::CaseSummary& row) const { return !only || row.case_index == *only; }
};

/// Finds the settings that a sweep proves faster than its baseline: the fastest value of each variable. case_name: only
/// this case, by its name or short name ("": all). `file`: the name of the result file in the evidence. Leaves out
/// values that the registry does not accept, and cases that failed later. Throws Error if the case is missing or not
/// proven, and (exit code 4) if the sweep is unreliable and proves nothing.
Export find_proven(const store::Result& result, const analysis::Summary& summary, const std::string& case_name,
                   const std::string& file);

/// All settings of a case as planned, whether or not anything is proven; without those that its workload or backend
/// ignores. `backend`, `as`: for Variable::honoured_on(). `about`: lines at the top.
Export all_settings(const config::Settings& settings, std::string_view backend, std::string_view as,
                    std::optional<config::Model> model, std::vector<std::string> about);
/// The settings of the case with this name or short name. Throws Error if there is none, or if this version cannot read
/// its settings.
Export planned_case(const store::Result& result, const analysis::Summary& summary, const std::string& case_name,
                    const std::string& file);

/// The framework; nullopt: shell environment variables.
using ExportFormat = std::optional<config::Framework>;

/// Writes shell code (environment, megatron, torchtitan) or JSON for DeepSpeed, each setting with its evidence;
/// settings that are left out are listed with the reason.
std::string export_text(const Export& exported, ExportFormat format);

/// Quotes the text as one word of a POSIX shell script. Throws Error for control characters, including line breaks.
std::string script_word(std::string_view text);

/// Returns the configuration of the next sweep, as YAML. It is the configuration of the file (with its --set), but
/// - the baseline takes the fastest proven change: of one variable, or a proven combination;
/// - lists lose values that are proven slower, failed, could not run, were not honoured (of an operation, at all of its
///   sizes), or are in the baseline;
/// - `combine` and a ladder are removed if the baseline changed, because they refer to the former one;
/// - `combine` gets the other proven changes together, if there are two or more.
///
/// Comments at the top give the reasons, each with its interval. Changes of `ranks` are never taken: they set the
/// amount of hardware. `proven`: from find_proven() on the same result; `file`: the name of the result file in the
/// comments. Throws Error if the file holds no readable configuration.
std::string next_configuration(const store::Result& result, const analysis::Summary& summary, const Export& proven,
                               const std::string& file);

/// The profiled step of a case as Chrome trace events (a JSON object with traceEvents, for ui.perfetto.dev and
/// chrome://tracing): a process per rank, a thread per track of analysis::drawn_step(), a complete event per operation,
/// in microseconds on the clock that all ranks share. The events follow the PyTorch profiler (Kineto), so that its
/// tools and `harness read` accept them: operations have the category "kernel", the step of a rank is the
/// gpu_user_annotation "ProfilerStep#0", and "loading" fills its inputs. Their arguments hold what the breakdown of the
/// step needs. Contains one rank of each role. Throws Error if there is no such case or it has no timeline.
std::string trace_json(const store::Result& result, const std::string& case_name);

}  // namespace harness::report
