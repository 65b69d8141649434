#include "report/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "config/backend.h"
#include "config/environment.h"
#include "config/registry.h"
#include "report/document.h"
#include "report/words.h"

namespace harness::report {
namespace {

using Json = nlohmann::ordered_json;

// Everything that is neither a flag nor a value, a line each.
struct Remarks {
  std::vector<std::string> head = {}, no_word = {}, left_out = {};
  const char* about_no_word = "Proven faster, but this framework has no equivalent setting:";
};

// Single operations have no model.
std::string model_words(const store::Result& result) {
  return result.points.empty()
             ? fmt::format(", {}, hidden {}", plural(result.model.layers, "layer"), result.model.hidden)
             : "";
}

Remarks remarks_of(const store::Result& result, const Proven& proven, const std::string& file) {
  Remarks out;
  out.left_out = proven.left_out;
  if (config::traits_of(result.backend).predicts()) {
    out.head.push_back(one_line(fmt::format(
        "Predicted, not measured: {} proves nothing, so there is nothing to set. Measure what it predicts.", file)));
    return out;
  }
  out.head.push_back(one_line(fmt::format("What {} proves faster than its baseline ({}, {}, {}{}).", file, result.name,
                                          result.created, plural(result.ranks, "rank"), model_words(result))));
  if (!result.ranks_are_gpus()) {
    out.head.push_back(fmt::format("Measured on backend {}: this says nothing about a GPU.", one_line(result.backend)));
  }
  if (proven.settings.empty()) out.head.emplace_back("Nothing is proven faster: there is nothing to set.");
  if (proven.settings.size() > 1) {
    out.head.emplace_back(
        "Each was proven alone against the baseline. Together they are not proven: run a sweep with all of them as the "
        "baseline.");
  }
  return out;
}

void comment(std::string& out, const std::string& line) {
  out += "# " + one_line(line) + "\n";
}

void comments_below(std::string& out, const Remarks& remarks) {
  if (!remarks.no_word.empty()) out += fmt::format("\n# {}\n", remarks.about_no_word);
  for (const auto& line : remarks.no_word) comment(out, "  " + line);
  if (!remarks.left_out.empty()) out += "\n# Left out:\n";
  for (const auto& line : remarks.left_out) comment(out, "  " + line);
}

config::FrameworkWords words_of(const ProvenSetting& setting, ExportFormat format) {
  if (!format) return {.note = "not an environment variable"};
  return config::words_in(*format, setting.variable, setting.settings);
}

// The settings by how a format writes them.
struct Written {
  struct Keys {
    std::string evidence;  // with the framework's note
    NameValues flags;
  };
  std::vector<Keys> keys = {};
  std::vector<ProvenSetting> environment = {};
};

// A setting that the format has no word for becomes a remark.
Written sort_out(const std::vector<ProvenSetting>& settings, ExportFormat format, Remarks& remarks) {
  Written out;
  for (const ProvenSetting& setting : settings) {
    if (!setting.environment.empty()) {
      out.environment.push_back(setting);
      continue;
    }
    const config::FrameworkWords words = words_of(setting, format);
    const std::string evidence =
        words.note.empty() ? setting.evidence : fmt::format("{} ({})", setting.evidence, words.note);
    if (words.known()) {
      out.keys.push_back({evidence, words.flags});
    } else {
      remarks.no_word.push_back(evidence);
    }
  }
  return out;
}

std::string exports(const std::vector<ProvenSetting>& settings) {
  std::string out;
  for (const ProvenSetting& setting : settings) {
    out += "\n";
    comment(out, setting.evidence);
    for (const auto& [name, value] : setting.environment)
      out += fmt::format("export {}={}\n", name, script_word(value));
  }
  return out;
}

// A framework that takes its settings as arguments.
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

// As a comment: whoever exports has a model.
std::string model_arguments(std::string heading, const config::Model& model, const CommandLine& to) {
  for (const auto& [name, value] : config::model_words_in(to.framework, model))
    heading += " " + argument(to, name, value);
  return heading;
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

// The path's keys as objects within each other.
void set_path(Json& root, const std::string& path, const std::string& value) {
  Json* at = &root;
  std::size_t from = 0;
  for (std::size_t dot; (dot = path.find('.', from)) != std::string::npos; from = dot + 1) {
    at = &(*at)[path.substr(from, dot - from)];
  }
  (*at)[path.substr(from)] = Json::parse(value);
}

std::string deepspeed_text(const Written& written, const Remarks& remarks) {
  std::vector<std::string> evidence;
  Json out = Json::object(), environment = Json::object();
  for (const Written::Keys& setting : written.keys) {
    evidence.push_back(setting.evidence);
    for (const auto& [path, value] : setting.flags) set_path(out, path, value);
  }
  for (const ProvenSetting& setting : written.environment) {
    evidence.push_back(setting.evidence + " (in the environment, or in .deepspeed_env)");
    for (const auto& [name, value] : setting.environment) environment[name] = value;
  }
  // JSON has no comments, and DeepSpeed passes over keys that it does not know.
  out["_harness"] = {{"about", remarks.head},
                     {"evidence", evidence},
                     {"environment", environment},
                     {"no_key", remarks.no_word},
                     {"left_out", remarks.left_out}};
  return out.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

// A Python literal: JSON's escapes are Python's, and with ensure_ascii nothing else is left in it.
std::string python_text(const std::string& value) {
  return Json(value).dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::string pytorch_text(const Written& written) {
  std::string environment;
  for (const ProvenSetting& setting : written.environment) {
    comment(environment, setting.evidence);
    for (const auto& [name, value] : setting.environment)
      environment += fmt::format("os.environ[{}] = {}\n", python_text(name), python_text(value));
  }
  std::map<std::string, std::string> groups;
  for (const auto& [evidence, flags] : written.keys) {
    std::string* last = nullptr;
    for (const auto& [path, value] : flags) {
      const std::size_t dot = path.find('.');
      std::string& group = groups[path.substr(0, dot)];
      if (&group != last) group += "    # " + evidence + "\n";
      last = &group;
      group += fmt::format("    {}={},\n", path.substr(dot + 1), value);
    }
  }
  std::string out;
  if (!environment.empty()) out += "import os\n";
  if (groups.contains("autocast") || groups.contains("sdpa")) out += "import torch\n";
  if (groups.contains("sdpa")) out += "import torch.nn.attention\n";
  if (!environment.empty()) {
    out += "\n# Before torch.distributed.init_process_group, or in the environment of torchrun.\n" + environment;
  }
  for (const auto& [group, use] : std::initializer_list<std::pair<const char*, const char*>>{
           {"ddp", "torch.nn.parallel.DistributedDataParallel(model, **ddp_options)"},
           {"loader", "torch.utils.data.DataLoader(dataset, **loader_options)"},
           {"autocast", "with torch.autocast(**autocast_options):"},
           {"matmul", "torch.set_float32_matmul_precision(**matmul_options)"},
           {"sdpa", "with torch.nn.attention.sdpa_kernel(**sdpa_options):"}}) {
    const auto at = groups.find(group);
    if (at != groups.end()) out += fmt::format("\n# {}\n{}_options = dict(\n{})\n", use, group, at->second);
  }
  return out;
}

// `model`: nullptr where there is none; `heading` leads to it.
std::string text_of(const std::vector<ProvenSetting>& settings, Remarks remarks, const config::Model* model,
                    const std::string& heading, ExportFormat format) {
  const Written written = sort_out(settings, format, remarks);
  if (format == config::Framework::deepspeed) return deepspeed_text(written, remarks);
  const auto* const line = std::ranges::find(command_lines, format, &CommandLine::framework);
  const bool has_arguments = line != command_lines.end();
  if (model != nullptr && has_arguments) remarks.head.push_back(model_arguments(heading, *model, *line));
  std::string out;
  for (const std::string& head : remarks.head) comment(out, head);
  if (has_arguments) {
    out += arguments_text(written, *line);
  } else {
    out += format == config::Framework::pytorch ? pytorch_text(written) : exports(written.environment);
  }
  comments_below(out, remarks);
  return out;
}

// The case as one setting per variable: what stands for itself, and what is not at its default.
std::vector<ProvenSetting> settings_of(const PlannedSettings& planned, ExportFormat format) {
  std::vector<ProvenSetting> all;
  const config::Settings defaults;
  for (const config::Variable& variable : config::registry()) {
    ProvenSetting one;
    one.variable = variable.name;
    one.value = variable.print(planned.settings);
    one.settings = planned.settings;
    one.name = one.evidence = fmt::format("{}={}", variable.name, one.value);
    const bool is_environment = !variable.environment_name.empty() || variable.free_parts;
    const bool is_decided_elsewhere =
        !variable.overridden_by.empty() && config::find_variable(variable.overridden_by)->print(planned.settings) !=
                                               config::find_variable(variable.overridden_by)->print(defaults);
    if (variable.fixed || is_environment || is_decided_elsewhere) continue;
    if (words_of(one, format).known() || one.value != variable.print(defaults)) all.push_back(std::move(one));
  }
  ProvenSetting environment;
  environment.environment = config::environment_of(planned.settings);
  environment.evidence = "environment";
  if (!environment.environment.empty()) all.push_back(std::move(environment));
  return all;
}

}  // namespace

std::string script_word(std::string_view text) {
  if (escaped(text) != text) {
    fail("{} has a control character or bytes that are not UTF-8, and cannot be written into a shell script",
         quote(text));
  }
  return shell_word(text);
}

std::string export_text(const store::Result& result, const Proven& proven, const std::string& file,
                        ExportFormat format) {
  const char* heading =
      config::traits_of(result.backend).predicts() ? "The model of it:" : "The model that was measured:";
  return text_of(proven.settings, remarks_of(result, proven, file), result.points.empty() ? &result.model : nullptr,
                 heading, format);
}

PlannedSettings planned_settings(const store::Result& result, const analysis::Summary& summary,
                                 const std::string& case_name, const std::string& file) {
  const std::int32_t index = find_case(result, case_name);
  const store::ResultCase& row = result.case_at(index);
  PlannedSettings planned{.name = row.name, .settings = {}};
  for (std::size_t v = 0; v < result.variables.size(); ++v) {
    const config::Variable* variable = config::find_variable(result.variables[v]);
    if (variable == nullptr) fail("this version of harness knows no variable {}", quote(result.variables[v]));
    if (!variable->fixed) variable->parse(planned.settings, row.settings[v]);
  }
  for (const auto& [name, value] : planned.settings.env) config::check_env_entry(name, value);
  if (result.points.empty()) planned.model = result.model;
  const bool predicted = config::traits_of(result.backend).predicts();
  planned.about.push_back(
      one_line(fmt::format("All settings of {} in {} ({}, {}, {}{}): {}.", row.name, file, result.name, result.created,
                           plural(result.ranks, "rank"), model_words(result), outcome_of(summary.case_at(index)))));
  if (predicted) planned.about.emplace_back("Predicted, not measured.");
  return planned;
}

std::string export_text(const PlannedSettings& planned, ExportFormat format) {
  const Remarks remarks{.head = planned.about, .about_no_word = "This framework has no equivalent setting:"};
  return text_of(settings_of(planned, format), remarks, planned.model ? &*planned.model : nullptr,
                 "Its model:", format);
}

}  // namespace harness::report
