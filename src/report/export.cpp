#include "report/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "config/backend.h"
#include "config/frameworks/framework.h"
#include "report/clean_text.h"
#include "report/table.h"

namespace harness::report {
namespace {

using Json = nlohmann::ordered_json;

// Everything that is neither a flag nor a value, a line each.
struct Remarks {
  std::vector<std::string> head, no_word, left_out;
};

// Single operations have no model.
std::string model_words(const store::Result& result) {
  return result.points.empty() ? fmt::format(", {} layers, hidden {}", result.model.layers, result.model.hidden) : "";
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
  if (!remarks.no_word.empty()) out += "\n# Proven faster, but this framework has no equivalent setting:\n";
  for (const auto& line : remarks.no_word) comment(out, "  " + line);
  if (!remarks.left_out.empty()) out += "\n# Left out:\n";
  for (const auto& line : remarks.left_out) comment(out, "  " + line);
}

std::string with_note(const std::string& line, const std::string& note) {
  return note.empty() ? line : line + " (" + note + ")";
}

config::FrameworkWords words_of(const ProvenSetting& setting, config::Framework framework) {
  return config::words_in(framework, setting.variable, setting.settings);
}

void exports(std::string& out, const ProvenSetting& setting) {
  comment(out, setting.evidence);
  for (const auto& [name, value] : setting.environment) out += fmt::format("export {}={}\n", name, script_word(value));
}

std::string env_text(const Proven& proven, Remarks remarks) {
  std::string out;
  for (const auto& line : remarks.head) comment(out, line);
  for (const ProvenSetting& setting : proven.settings) {
    if (setting.environment.empty()) {
      remarks.no_word.push_back(with_note(setting.evidence, "not an environment variable"));
      continue;
    }
    out += "\n";
    exports(out, setting);
  }
  comments_below(out, remarks);
  return out;
}

// A framework that takes its settings as arguments.
struct CommandLine {
  config::Framework framework;
  const char *array, *program, *prefix;  // of the shell's array, what it is passed to, before each key
};
constexpr CommandLine megatron{config::Framework::megatron, "MEGATRON_ARGS", "pretrain_gpt.py", ""};
constexpr CommandLine torchtitan{config::Framework::torchtitan, "TORCHTITAN_ARGS", "torchtitan.train", "--"};

std::string argument(const CommandLine& line, const std::string& name, const std::string& value) {
  return line.prefix + name + (value.empty() ? "" : " " + script_word(value));
}

// As a comment: whoever exports has a model.
std::string model_arguments(const store::Result& result, const CommandLine& to) {
  std::string line = config::traits_of(result.backend).predicts() ? "The model of it:" : "The model that was measured:";
  for (const auto& [name, value] : config::model_words_in(to.framework, result.model))
    line += " " + argument(to, name, value);
  return line;
}

std::string arguments_text(const Proven& proven, Remarks remarks, const CommandLine& line) {
  std::string flags, environment;
  for (const ProvenSetting& setting : proven.settings) {
    if (!setting.environment.empty()) {
      environment += "\n";
      exports(environment, setting);
      continue;
    }
    const config::FrameworkWords words = words_of(setting, line.framework);
    if (!words.known()) {
      remarks.no_word.push_back(with_note(setting.evidence, words.note));
      continue;
    }
    flags += "  # " + with_note(setting.evidence, words.note) + "\n";
    for (const auto& [name, value] : words.flags) flags += "  " + argument(line, name, value) + "\n";
  }
  std::string out;
  for (const auto& head : remarks.head) comment(out, head);
  comment(out, fmt::format("For bash: source this file, then pass \"${{{}[@]}}\" to {}.", line.array, line.program));
  out += fmt::format("{}\n{}=(\n{})\n", environment, line.array, flags);
  comments_below(out, remarks);
  return out;
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

std::string deepspeed_text(const Proven& proven, const Remarks& remarks) {
  Json notes = {{"about", remarks.head},
                {"evidence", Json::array()},
                {"environment", Json::object()},
                {"no_key", Json::array()},
                {"left_out", remarks.left_out}};
  Json out = Json::object();
  for (const ProvenSetting& setting : proven.settings) {
    if (!setting.environment.empty()) {
      notes["evidence"].push_back(with_note(setting.evidence, "in the environment, or in .deepspeed_env"));
      for (const auto& [name, value] : setting.environment) notes["environment"][name] = value;
      continue;
    }
    const config::FrameworkWords words = words_of(setting, config::Framework::deepspeed);
    notes[words.known() ? "evidence" : "no_key"].push_back(with_note(setting.evidence, words.note));
    for (const auto& [path, value] : words.flags) set_path(out, path, value);
  }
  // JSON has no comments, and DeepSpeed passes over keys that it does not know.
  out["_harness"] = std::move(notes);
  return out.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

// A Python literal: JSON's escapes are Python's, and with ensure_ascii nothing else is left in it.
std::string python_text(const std::string& value) {
  return Json(value).dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::string pytorch_text(const Proven& proven, Remarks remarks) {
  std::string environment;
  std::map<std::string, std::string> groups;
  for (const ProvenSetting& setting : proven.settings) {
    if (!setting.environment.empty()) {
      comment(environment, setting.evidence);
      for (const auto& [name, value] : setting.environment) {
        environment += fmt::format("os.environ[{}] = {}\n", python_text(name), python_text(value));
      }
      continue;
    }
    const config::FrameworkWords words = words_of(setting, config::Framework::pytorch);
    if (!words.known()) {
      remarks.no_word.push_back(with_note(setting.evidence, words.note));
      continue;
    }
    std::string* last = nullptr;
    for (const auto& [path, value] : words.flags) {
      const std::size_t dot = path.find('.');
      std::string& group = groups[path.substr(0, dot)];
      if (&group != last) group += "    # " + with_note(setting.evidence, words.note) + "\n";
      last = &group;
      group += fmt::format("    {}={},\n", path.substr(dot + 1), value);
    }
  }
  std::string out;
  for (const auto& line : remarks.head) comment(out, line);
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
  comments_below(out, remarks);
  return out;
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
  Remarks remarks = remarks_of(result, proven, file);
  switch (format) {
    case ExportFormat::megatron:
    case ExportFormat::torchtitan: {
      const CommandLine& line = format == ExportFormat::megatron ? megatron : torchtitan;
      if (result.points.empty()) remarks.head.push_back(model_arguments(result, line));
      return arguments_text(proven, std::move(remarks), line);
    }
    case ExportFormat::deepspeed:
      return deepspeed_text(proven, remarks);
    case ExportFormat::pytorch:
      return pytorch_text(proven, std::move(remarks));
    case ExportFormat::env:
      break;
  }
  return env_text(proven, std::move(remarks));
}

}  // namespace harness::report
