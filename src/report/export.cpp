#include "report/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "analysis/breakdown.h"
#include "analysis/cases.h"
#include "config/backend.h"
#include "config/registry.h"
#include "report/document.h"
#include "report/json.h"
#include "report/words.h"

namespace harness::report {
namespace {

void comment(std::string& out, const std::string& line) {
  out += "# " + one_line(line) + "\n";
}

struct Written {
  struct Setting {
    std::string evidence;  // with the framework's remark
    NameValues words;      // flags, keys or environment variables
  };
  std::vector<Setting> keys = {}, environment = {};
  std::vector<std::string> no_word = {};  // evidence of settings that the format cannot express
};

Written sort_out(const std::vector<ExportedSetting>& settings, ExportFormat format) {
  Written out;
  std::set<std::pair<std::string, std::string>> written;  // two settings may need the same key
  for (const ExportedSetting& setting : settings) {
    if (!setting.environment.empty()) {
      out.environment.push_back({setting.evidence, setting.environment});
      continue;
    }
    const config::FrameworkWords words = format ? config::words_in(*format, setting.variable, setting.settings)
                                                : config::FrameworkWords{.note = "not an environment variable"};
    const std::string evidence =
        one_line(words.note.empty() ? setting.evidence : fmt::format("{} ({})", setting.evidence, words.note));
    if (words.known()) {
      NameValues flags = words.flags;
      std::erase_if(flags, [&](const auto& flag) { return !written.insert(flag).second; });
      if (!flags.empty() || !setting.is_default) out.keys.push_back({evidence, std::move(flags)});
    } else if (!setting.is_default) {
      out.no_word.push_back(evidence);
    }
  }
  return out;
}

void comments_below(std::string& out, const char* heading, const std::vector<std::string>& lines) {
  if (!lines.empty()) out += fmt::format("\n# {}\n", heading);
  for (const std::string& line : lines) comment(out, "  " + line);
}

std::string exports(const std::vector<Written::Setting>& settings) {
  std::string out;
  for (const auto& [evidence, words] : settings) {
    out += "\n";
    comment(out, evidence);
    for (const auto& [name, value] : words) out += fmt::format("export {}={}\n", name, script_word(value));
  }
  return out;
}

struct CommandLine {
  config::Framework framework;
  const char *array, *program, *prefix;  // of the shell's array, what it is passed to, before each key
};
constexpr std::array command_lines{
    CommandLine{config::Framework::megatron, "MEGATRON_ARGS", "pretrain_gpt.py", ""},
    CommandLine{config::Framework::torchtitan, "TORCHTITAN_ARGS", "torchtitan.train", "--"}};

std::string argument(const CommandLine& line, const std::string& name, const std::string& value) {
  return line.prefix + name + (value.empty() ? "" : " " + script_word(value));
}

// Written as a comment, because the user already has a model.
std::string model_arguments(const config::Model& model, const CommandLine& to) {
  std::string line = "The model:";
  for (const auto& [name, value] : config::model_words_in(to.framework, model)) line += " " + argument(to, name, value);
  return line;
}

std::string arguments_text(const Written& written, const CommandLine& line) {
  std::string out;
  comment(out, fmt::format("For bash: source this file, then pass \"${{{}[@]}}\" to {}.", line.array, line.program));
  out += fmt::format("{}\n{}=(\n", exports(written.environment), line.array);
  for (const auto& [evidence, flags] : written.keys) {
    out += "  # " + evidence + "\n";
    for (const auto& [name, value] : flags) out += "  " + argument(line, name, value) + "\n";
  }
  return out + ")\n";
}

// Sets a nested key: each part of the dotted path is an object within the previous one.
void set_path(Json& root, const std::string& path, const std::string& value) {
  Json* at = &root;
  for (const std::string& key : split_text(path, ".")) at = &(*at)[key];
  *at = Json::parse(value);
}

std::string deepspeed_text(const Written& written, const Export& exported) {
  std::vector<std::string> evidence;
  Json out = Json::object(), environment = Json::object();
  for (const auto& [why, words] : written.keys) {
    evidence.push_back(why);
    for (const auto& [path, value] : words) set_path(out, path, value);
  }
  for (const auto& [why, words] : written.environment) {
    evidence.push_back(why + " (in the environment, or in .deepspeed_env)");
    for (const auto& [name, value] : words) environment[name] = value;
  }
  // JSON has no comments, and DeepSpeed ignores keys that it does not know.
  out["_harness"] = {{"about", exported.about},
                     {"evidence", evidence},
                     {"environment", environment},
                     {"no_key", written.no_word},
                     {"left_out", exported.left_out}};
  return json_text(out);
}

// Numbers the tracks as threads, "compute" first, so that every rank shows them in the same order.
std::map<std::string, int> number_tracks(const analysis::DrawnStep& step) {
  std::set<std::pair<bool, std::string>> tracks;  // false comes first
  for (const analysis::DrawnInterval& x : step.intervals) tracks.emplace(x.track != "compute", x.track);
  std::map<std::string, int> numbers;
  for (const auto& [is_later, name] : tracks) numbers.emplace(name, static_cast<int>(numbers.size()));
  return numbers;
}

Json naming(const char* what, int process, int thread, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

std::string name_of_rank(const store::Result& result, const store::ResultInterval& row) {
  std::string name = fmt::format("rank {} (role {}", row.rank, row.role);
  const std::vector<store::ResultRole> roles = store::roles_of(result, row.case_index);
  if (std::cmp_less(row.rank, roles.size())) {
    const auto host = std::ranges::find(result.rank_table, roles[row.rank].node, &store::ResultRank::node);
    if (host != result.rank_table.end()) name += ", " + host->host;
  }
  return name + ")";
}

Json complete(const std::string& name, const char* category, double start_s, double end_s, int rank, int thread,
              Json arguments = Json::object()) {
  // Rounded to whole nanoseconds, the resolution of viewers, so that consecutive events do not overlap.
  const double start_ns = std::round(1e9 * start_s), end_ns = std::round(1e9 * end_s);
  return {{"name", name},
          {"cat", category},
          {"ph", "X"},
          {"ts", start_ns / 1e3},
          {"dur", (end_ns - start_ns) / 1e3},
          {"pid", rank},
          {"tid", thread},
          {"args", std::move(arguments)}};
}

Json operation(const analysis::DrawnInterval& x, int thread, const analysis::CaseRanks& ranks,
               const analysis::GroupsOf& group_of) {
  const store::ResultInterval& row = *x.row;
  Json arguments = {{"kind", row.kind}, {"operation", row.operation}, {"role", row.role}, {"phase", row.phase}};
  if (row.layer >= 0) arguments["layer"] = row.layer;
  if (row.micro_batch >= 0) arguments["micro_batch"] = row.micro_batch;
  if (!row.what.empty()) arguments["what"] = row.what;
  if (row.recomputed != 0) arguments["recomputed"] = 1;
  if (const std::string group(group_of(row)); !group.empty()) arguments["group"] = group;
  const bool others = analysis::is_collective(row.kind) && ranks.has_stage_mates();
  if (others && std::isfinite(row.waiting_s)) arguments["waiting_us"] = 1e6 * row.waiting_s;
  if (analysis::is_communication(row.kind) && ranks.has_stages() && std::isfinite(row.bubble_s))
    arguments["bubble_us"] = 1e6 * row.bubble_s;
  return complete(row.what.empty() ? row.kind : row.kind + " " + row.what, "kernel", x.start_s, x.end_s, row.rank,
                  thread, std::move(arguments));
}

// Adds the step of the rank of `first`, its first interval, and the data loading in it.
void add_step(const store::Result& result, const analysis::DrawnInterval& first, double end_s, int thread,
              Json& events) {
  const int rank = first.row->rank;
  const double start_s = first.start_s - first.row->start_s;
  double loading_s = 0;
  for (const store::ResultSplit& split : result.splits) {
    if (split.case_index != first.row->case_index || split.rank != rank) continue;
    if (split.step_s > 0) end_s = start_s + split.step_s;
    if (std::isfinite(split.loading_s)) loading_s = std::clamp(split.loading_s, 0.0, end_s - start_s);
  }
  events.push_back(complete("ProfilerStep#0", "gpu_user_annotation", start_s, end_s, rank, thread));
  if (loading_s > 0) events.push_back(complete("data loading", "loading", start_s, start_s + loading_s, rank, thread));
}

}  // namespace

Export all_settings(const config::Settings& settings, std::string_view backend, std::string_view as,
                    std::optional<config::Model> model, std::vector<std::string> about) {
  Export out{.about = std::move(about), .settings = {}, .left_out = {}, .model = std::move(model), .only = {}};
  const config::Settings defaults;
  for (const config::Variable& variable : config::registry()) {
    const bool is_environment = !variable.environment_name.empty() || variable.free_parts;
    const config::Variable* other =
        variable.overridden_by.empty() ? nullptr : config::find_variable(variable.overridden_by);
    const bool is_decided_elsewhere = other != nullptr && other->print(settings) != other->print(defaults);
    const bool counts = variable.honoured_by(settings.workload) && variable.honoured_on(backend, as);
    if (variable.fixed || is_environment || is_decided_elsewhere || !counts) continue;
    const std::string value = variable.print(settings);
    out.settings.push_back({.variable = variable.name,
                            .value = value,
                            .settings = settings,
                            .environment = {},
                            .evidence = fmt::format("{}={}", variable.name, value),
                            .is_default = value == variable.print(defaults)});
  }
  ExportedSetting environment;
  environment.environment = config::environment_of(settings);
  environment.evidence = "environment";
  if (!environment.environment.empty()) out.settings.push_back(std::move(environment));
  return out;
}

std::string script_word(std::string_view text) {
  if (escaped(text) != text) {
    fail("{} has a control character or bytes that are not UTF-8, and cannot be written into a shell script",
         quote(text));
  }
  return shell_word(text);
}

std::string export_text(const Export& exported, ExportFormat format) {
  const Written written = sort_out(exported.settings, format);
  if (format == config::Framework::deepspeed) return deepspeed_text(written, exported);
  std::string out;
  for (const std::string& line : exported.about) comment(out, line);
  const auto* const line = std::ranges::find(command_lines, format, &CommandLine::framework);
  if (line != command_lines.end()) {
    if (exported.model) comment(out, model_arguments(*exported.model, *line));
    out += arguments_text(written, *line);
  } else {
    out += exports(written.environment);
  }
  comments_below(out, "This framework has no equivalent setting:", written.no_word);
  comments_below(out, "Left out:", exported.left_out);
  return out;
}

std::string trace_json(const store::Result& result, const std::string& case_name) {
  const std::int32_t index = find_case(result, case_name);
  const store::ResultCase& chosen = result.case_at(index);
  const analysis::DrawnStep step = analysis::drawn_step(result, index);
  if (step.intervals.empty()) {
    const char* why = chosen.role() == store::CaseRole::control ? " (it is the baseline)" : "";
    fail("case {} has no timeline{}: the file holds no profiled step of it", quote(case_name), why);
  }
  const auto threads = number_tracks(step);
  const int step_thread = static_cast<int>(threads.size());
  const analysis::CaseRanks ranks(result, index);
  const analysis::GroupsOf group_of(result, index);
  std::map<int, double> ends_s;  // by rank
  for (const analysis::DrawnInterval& x : step.intervals) ends_s[x.row->rank] = std::max(ends_s[x.row->rank], x.end_s);
  Json events = Json::array();
  std::set<std::pair<int, int>> named;
  for (const analysis::DrawnInterval& x : step.intervals) {
    const int rank = x.row->rank, thread = threads.at(x.track);
    if (named.emplace(rank, step_thread).second) {
      events.push_back(naming("process_name", rank, 0, name_of_rank(result, *x.row)));
      events.push_back(naming("thread_name", rank, step_thread, "step"));
      add_step(result, x, ends_s[rank], step_thread, events);
    }
    if (named.emplace(rank, thread).second) events.push_back(naming("thread_name", rank, thread, x.track));
  }
  for (const analysis::DrawnInterval& x : step.intervals)
    events.push_back(operation(x, threads.at(x.track), ranks, group_of));
  const Json out = {
      {"traceEvents", std::move(events)},
      {"displayTimeUnit", "ms"},
      {"distributedInfo", {{"world_size", chosen.ranks}}},  // as in PyTorch's profiler
      {"otherData",
       {{"what", config::traits_of(result.backend).predicts() ? "one predicted step, not measured"
                                                              : "one profiled step, outside the timed blocks"},
        {"clock", step.one_clock ? "shared: the closing all-reduce ends at once on all ranks"
                                 : "of each rank: from the start of its own step"},
        {"case", chosen.name},
        {"run", result.name},
        {"backend", result.backend},
        {"created", result.created},
        {"run_uuid", result.run_uuid},
        {"tool_version", result.tool_version}}}};
  return out.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace harness::report
