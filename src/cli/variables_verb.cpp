#include <nlohmann/json.hpp>

#include <algorithm>
#include <ostream>
#include <utility>

#include "base/text.h"
#include "cli/verbs.h"
#include "config/choice.h"
#include "config/frameworks/framework.h"
#include "config/registry.h"
#include "report/document.h"

namespace harness::cli {
namespace {

using Json = nlohmann::ordered_json;

// Sizes, times and shares are numbers, or strings with a unit. Listed words are offered for completion, even if other
// values are allowed.
Json scalar_of(const config::Choices& choices) {
  Json any{{"type", {"string", "number", "boolean"}}};
  if (choices.words.empty()) return any;
  Json words = Json::array();
  for (const std::string& word : choices.words) {
    const Json typed = Json::parse(word, nullptr, false);  // typed as in YAML: true and 64 are not strings
    words.push_back(typed.is_discarded() ? Json(word) : typed);
  }
  const Json listed{{"enum", std::move(words)}};
  return choices.all ? listed : Json{{"anyOf", {listed, any}}};
}

Json closed_map(Json properties) {
  return {{"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
}

std::string about(const std::string& help, const std::string& allowed) {
  return allowed.empty() ? help : fmt::format("{}\nallowed: {}", help, allowed);
}

// A list of values for each variable, or one value. The schema does not check composite values.
Json per_variable(bool lists) {
  Json properties = Json::object();
  for (const config::Variable& variable : config::registry()) {
    if (variable.fixed) continue;
    const bool has_parts = variable.free_parts || !variable.parts.empty();
    Json value = has_parts ? Json::object() : scalar_of(variable.choices);
    if (lists && variable.purpose == config::Purpose::size) {
      value = Json::object();  // a list, or from_model
    } else if (lists) {
      value = {{"type", "array"}, {"items", std::move(value)}, {"minItems", 1}};
    }
    value["description"] = about(variable.help, variable.allowed);
    properties[variable.name] = std::move(value);
  }
  return closed_map(std::move(properties));
}

// The keys directly within the map `name`; "": top level.
Json map_of(const std::string& name, const std::vector<config::Key>& all) {
  Json properties = Json::object(), required = Json::array();
  for (const config::Key& key : all) {
    const std::size_t dot = key.name.rfind('.');
    if ((dot == std::string::npos ? "" : key.name.substr(0, dot)) != name) continue;
    const std::string last = dot == std::string::npos ? key.name : key.name.substr(dot + 1);
    using enum config::Takes;
    Json shape = Json::object();  // anything
    if (key.takes == value) shape = scalar_of(key.choices);
    if (key.takes == map) shape = map_of(key.name, all);
    if (key.takes == values || key.takes == lists) shape = per_variable(key.takes == lists);
    shape["description"] = about(key.help, key.allowed);
    properties[last] = std::move(shape);
    // Whether a model is required depends on the workload.
    if (key.required && key.takes != name_or_map) required.push_back(last);
  }
  Json out = closed_map(std::move(properties));
  if (!required.empty()) out["required"] = std::move(required);
  return out;
}

constexpr std::size_t width = 78;  // of prose; two columns before it

std::string backends_of(const config::Variable& v) {
  std::vector<std::string> names;
  for (const config::BackendKind kind : v.backends) names.emplace_back(config::name_of(kind));
  return join(names, ", ");
}

std::string workloads_of(const config::Variable& v) {
  return v.workloads.empty() ? "all" : join(v.workloads, ", ");
}

std::string swept_as(const config::Variable& v) {
  if (v.fixed) return "no: the same for all cases, at the top of a configuration";
  return v.purpose == config::Purpose::size ? "yes, also from_model" : "yes";
}

std::string line(std::string_view label, const std::string& text) {
  constexpr std::size_t indent = 13;
  return fmt::format("  {:9}  {}", label, report::wrapped(text, width - indent, indent));
}

std::string title(const std::string& name, const std::string& help) {
  return name + "\n  " + report::wrapped(help, width, 2);
}

std::string entry(const config::Variable& v) {
  std::string out = title(v.name, v.help);
  out += line("values", v.allowed) + line("default", config::default_of(v)) + line("backends", backends_of(v));
  out += line("workloads", workloads_of(v)) + line("swept", swept_as(v));
  if (!v.environment_name.empty()) out += line("sets", v.environment_name + " in the workers' environment");
  return out + line("example", config::example_of(v));
}

std::string entry(const config::Key& key) {
  std::string out = title(key.name, key.help);
  if (!key.allowed.empty()) out += line("values", key.allowed);
  if (!key.fallback.empty()) out += line("default", key.fallback);
  if (key.required) out += line("required", "yes");
  return out;
}

// The entry of a variable, of a key and the keys inside it, or of a key by its last word: "rounds" is measure.rounds.
std::string entries_of(const std::string& name, const std::vector<config::Key>& keys) {
  if (const config::Variable* v = config::find_variable(name); v != nullptr) return entry(*v);
  std::string out;
  for (const config::Key& key : keys) {
    if (key.name == name || key.name.starts_with(name + ".") || key.name.ends_with("." + name))
      out += (out.empty() ? "" : "\n") + entry(key);
  }
  return out;
}

[[noreturn]] void unknown(const std::string& name, const std::vector<config::Key>& keys) {
  if (const std::string known = config::known_elsewhere_as(name).hint; !known.empty()) {
    fail("{} is no variable and no key: {}", quote(name), known);
  }
  std::vector<std::string> names = config::variable_names(), tails;
  for (const config::Key& key : keys) {
    names.push_back(key.name);
    tails.push_back(key.name.substr(key.name.rfind('.') + 1));
  }
  std::string near = nearest(name, names);
  if (near.empty()) near = nearest(name, tails);
  fail("{} is no variable and no key; `harness variables` lists them{}", quote(name), did_you_mean(near));
}

std::string all_text(const std::vector<config::Key>& keys) {
  std::string out = "Variables: a value each under `baseline`, a list of values under `sweep`.\n";
  for (const config::Variable& v : config::registry()) out += "\n" + entry(v);
  out += "\nOther keys of a configuration\n";
  for (const config::Key& key : keys) out += "\n" + entry(key);
  return out;
}

std::string code(const std::string& text) {
  return text.empty() ? "" : "`" + text + "`";
}

std::string all_markdown(const std::vector<config::Key>& keys) {
  std::string out =
      "# Variables and keys\n\n"
      "What a configuration may say. This page is the output of `harness variables --format md`; `harness variables "
      "NAME`\n"
      "prints one entry.\n\n"
      "## Variables\n\n"
      "A variable is what two cases of a sweep can differ in. It has one value under `baseline`, and under `sweep` a "
      "list\n"
      "of the values to try. `workload` alone is the same for all cases and stands at the top.\n\n"
      "| variable | what it is | values | default | backends | workloads | example |\n|---|---|---|---|---|---|---|\n";
  for (const config::Variable& v : config::registry()) {
    out += fmt::format("| {} | {} | {}{} | {} | {} | {} | {} |\n", code(v.name), v.help, v.allowed,
                       v.purpose == config::Purpose::size ? "; under `sweep` also `from_model`" : "",
                       code(config::default_of(v)), backends_of(v), workloads_of(v), code(config::example_of(v)));
  }
  out += "\n## Keys\n\n| key | what it is | values | default |\n|---|---|---|---|\n";
  for (const config::Key& key : keys) {
    out += fmt::format("| {} | {} | {} | {} |\n", code(key.name), key.help, key.allowed,
                       key.required && key.fallback.empty() ? "required" : key.fallback);
  }
  return out;
}

}  // namespace

std::string configuration_schema() {
  Json schema{{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", "a configuration of harness"}};
  schema.update(map_of("", config::keys()));
  return schema.dump(1) + "\n";
}

int variables(const VariablesOptions& options, std::ostream& out) {
  const bool whole = options.schema || options.format != "text";
  if (!options.name.empty() && whole)
    fail("{} writes all variables; leave out {}", options.schema ? "--schema" : "--format " + options.format,
         quote(options.name));
  const std::vector<config::Key> keys = config::keys();
  if (options.schema) {
    out << configuration_schema();
  } else if (options.format == "md") {
    out << all_markdown(keys);
  } else if (options.name.empty()) {
    out << all_text(keys);
  } else {
    const std::string text = entries_of(options.name, keys);
    if (text.empty()) unknown(options.name, keys);
    out << text;
  }
  return 0;
}

}  // namespace harness::cli
