#include <nlohmann/json.hpp>

#include <algorithm>
#include <ostream>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "cli/verbs.h"
#include "config/choice.h"
#include "config/frameworks/framework.h"
#include "config/registry.h"
#include "report/document.h"

namespace harness::cli {
namespace {

using Json = nlohmann::ordered_json;

// Sizes, times and shares are numbers, or texts with a unit. Words are offered for completion, whatever else is
// allowed.
Json scalar_of(const config::Choices& choices) {
  const Json any{{"type", {"string", "number", "boolean"}}};
  if (choices.words.empty()) return any;
  Json words = Json::array();
  for (const std::string& word : choices.words) {
    const Json typed = Json::parse(word, nullptr, false);  // as YAML takes it: true and 64 are no texts
    words.push_back(typed.is_discarded() ? Json(word) : typed);
  }
  const Json listed{{"enum", std::move(words)}};
  return choices.all ? listed : Json{{"anyOf", {listed, any}}};
}

Json closed_map(Json properties) {
  return {{"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
}

Json open_map(Json value) {
  return {{"type", "object"}, {"additionalProperties", std::move(value)}};
}

Json list_of(Json items) {
  return {{"type", "array"}, {"items", std::move(items)}, {"minItems", 1}};
}

Json either(Json one, Json other) {
  return {{"anyOf", {std::move(one), std::move(other)}}};
}

Json described(Json shape, std::string text, const std::string& allowed, const std::string& fallback) {
  if (!allowed.empty()) text += "\nallowed: " + allowed;
  if (!fallback.empty()) text += "\ndefault: " + fallback;
  shape["description"] = std::move(text);
  return shape;
}

// One value of a variable.
Json value_of(const config::Variable& variable) {
  Json shape = scalar_of(variable.choices), parts = Json::object();
  for (const std::string& part : variable.parts) parts[part] = scalar_of({});
  if (!variable.parts.empty()) shape = closed_map(std::move(parts));
  if (variable.free_parts) shape = open_map(scalar_of({}));
  return described(std::move(shape), variable.help, variable.allowed, config::default_of(variable));
}

Json values_of(const config::Variable& variable) {
  Json list = list_of(value_of(variable));
  if (variable.purpose == config::Purpose::size) list = either(std::move(list), {{"enum", {"from_model"}}});
  return described(std::move(list), variable.help, variable.allowed, "");
}

Json per_variable(Json (*make)(const config::Variable&)) {
  Json properties = Json::object();
  for (const config::Variable& variable : config::registry()) {
    if (!variable.fixed) properties[variable.name] = make(variable);
  }
  return closed_map(std::move(properties));
}

Json schema_of(const config::Key& key, const std::vector<config::Key>& all);

// The keys directly within the map `name`; of the whole configuration for "".
Json map_of(const std::string& name, const std::vector<config::Key>& all) {
  Json properties = Json::object(), required = Json::array();
  for (const config::Key& key : all) {
    const std::size_t dot = key.name.rfind('.');
    if ((dot == std::string::npos ? "" : key.name.substr(0, dot)) != name) continue;
    const std::string last = dot == std::string::npos ? key.name : key.name.substr(dot + 1);
    properties[last] = schema_of(key, all);
    // Whether a model is required depends on the workload.
    if (key.required && key.takes != config::Takes::name_or_map) required.push_back(last);
  }
  Json map = closed_map(std::move(properties));
  if (!required.empty()) map["required"] = std::move(required);
  return map;
}

Json shape_of(const config::Key& key, const std::vector<config::Key>& all) {
  using enum config::Takes;
  switch (key.takes) {
    case value:
      return scalar_of(key.choices);
    case list:
      return list_of(scalar_of({}));
    case map:
      return map_of(key.name, all);
    case map_or_maps:
      return either(map_of(key.name, all), list_of(map_of(key.name, all)));
    case name_or_map:
      return either(scalar_of(std::ranges::find(all, key.name + ".preset", &config::Key::name)->choices),
                    map_of(key.name, all));
    case values:
      return per_variable(value_of);
    case lists:
      return per_variable(values_of);
    case maps:
      return list_of(per_variable(value_of));
    case named_maps:
      return list_of(open_map(per_variable(value_of)));
  }
  return {};
}

Json schema_of(const config::Key& key, const std::vector<config::Key>& all) {
  return described(shape_of(key, all), key.help, key.allowed, key.fallback);
}

constexpr std::size_t width = 100;

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

// A variable, a key with those inside it, or the last word of a key: "rounds" is measure.rounds.
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
  if (const std::string known = config::known_elsewhere_as(name); !known.empty()) {
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
