#include "report/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "config/registry.h"
#include "report/document.h"

namespace harness::report {
namespace {

using Json = nlohmann::ordered_json;

void comment(std::string& out, const std::string& line) {
  out += "# " + one_line(line) + "\n";
}

config::FrameworkWords words_of(const ExportedSetting& setting, ExportFormat format) {
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
  std::vector<ExportedSetting> environment = {};
  std::vector<std::string> no_word = {};  // evidence of what the format has no word for
};

Written sort_out(const std::vector<ExportedSetting>& settings, ExportFormat format) {
  Written out;
  for (const ExportedSetting& setting : settings) {
    if (!setting.environment.empty()) {
      out.environment.push_back(setting);
      continue;
    }
    const config::FrameworkWords words = words_of(setting, format);
    const std::string evidence =
        one_line(words.note.empty() ? setting.evidence : fmt::format("{} ({})", setting.evidence, words.note));
    if (words.known()) {
      out.keys.push_back({evidence, words.flags});
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

std::string exports(const std::vector<ExportedSetting>& settings) {
  std::string out;
  for (const ExportedSetting& setting : settings) {
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

// The path's keys as objects within each other.
void set_path(Json& root, const std::string& path, const std::string& value) {
  Json* at = &root;
  std::size_t from = 0;
  for (std::size_t dot; (dot = path.find('.', from)) != std::string::npos; from = dot + 1) {
    at = &(*at)[path.substr(from, dot - from)];
  }
  (*at)[path.substr(from)] = Json::parse(value);
}

std::string deepspeed_text(const Written& written, const Export& exported) {
  std::vector<std::string> evidence;
  Json out = Json::object(), environment = Json::object();
  for (const Written::Keys& setting : written.keys) {
    evidence.push_back(setting.evidence);
    for (const auto& [path, value] : setting.flags) set_path(out, path, value);
  }
  for (const ExportedSetting& setting : written.environment) {
    evidence.push_back(setting.evidence + " (in the environment, or in .deepspeed_env)");
    for (const auto& [name, value] : setting.environment) environment[name] = value;
  }
  // JSON has no comments, and DeepSpeed passes over keys that it does not know.
  out["_harness"] = {{"about", exported.about},
                     {"evidence", evidence},
                     {"environment", environment},
                     {"no_key", written.no_word},
                     {"left_out", exported.left_out}};
  return out.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace

Export all_settings(const config::Settings& settings, std::optional<config::Model> model,
                    std::vector<std::string> about) {
  Export out{.about = std::move(about), .settings = {}, .left_out = {}, .model = std::move(model), .only = {}};
  const config::Settings defaults;
  for (const config::Variable& variable : config::registry()) {
    const bool is_environment = !variable.environment_name.empty() || variable.free_parts;
    const config::Variable* other =
        variable.overridden_by.empty() ? nullptr : config::find_variable(variable.overridden_by);
    const bool is_decided_elsewhere = other != nullptr && other->print(settings) != other->print(defaults);
    if (variable.fixed || is_environment || is_decided_elsewhere) continue;
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

}  // namespace harness::report
