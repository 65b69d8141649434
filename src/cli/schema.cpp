#include "cli/schema.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "config/choice.h"
#include "config/registry.h"

namespace harness::cli {
namespace {

using Json = nlohmann::ordered_json;

// As YAML takes a word: true and 64 are no texts.
Json as_yaml(const std::string& word) {
  if (word == "true" || word == "false") return word == "true";
  const bool number = word.find_first_not_of("0123456789") == std::string::npos;
  return number ? Json(std::stoll(word)) : Json(word);
}

// Sizes, times and shares are numbers, or texts with a unit.
Json any_scalar() {
  return {{"type", {"string", "number", "boolean"}}};
}

// The words are offered for completion, whatever else is allowed.
Json scalar_of(const config::Choices& choices) {
  if (choices.words.empty()) return any_scalar();
  Json listed = Json::array();
  for (const std::string& word : choices.words) listed.push_back(as_yaml(word));
  Json choice{{"enum", std::move(listed)}};
  if (choices.all) return choice;
  return {{"anyOf", {std::move(choice), any_scalar()}}};
}

Json closed_map(Json properties) {
  return {{"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
}

Json list_of(Json items) {
  return {{"type", "array"}, {"items", std::move(items)}, {"minItems", 1}};
}

std::string described(const std::string& help, const std::string& allowed, const std::string& fallback) {
  std::string text = help;
  if (!allowed.empty()) text += "\nallowed: " + allowed;
  if (!fallback.empty()) text += "\ndefault: " + fallback;
  return text;
}

// One value of a variable.
Json value_of(const config::Variable& variable) {
  Json parts = Json::object();
  for (const std::string& part : variable.parts) parts[part] = any_scalar();
  Json value;
  if (variable.free_parts) {
    value = {{"type", "object"}, {"additionalProperties", any_scalar()}};
  } else if (!variable.parts.empty()) {
    value = closed_map(parts);
  } else {
    value = scalar_of(variable.choices);
  }
  value["description"] = described(variable.help, variable.allowed, config::default_of(variable));
  return value;
}

// An editor shows the description that stands beside a reference only from a later draft on.
Json reference_to(const config::Variable& variable) {
  return {{"$ref", "#/definitions/" + variable.name}};
}

Json swept(const config::Variable& variable) {
  Json list = list_of(reference_to(variable));
  if (variable.purpose == config::Purpose::size) list = {{"anyOf", {std::move(list), {{"enum", {"from_model"}}}}}};
  list["description"] = described(variable.help, variable.allowed, "");
  return list;
}

template <class Make>
Json per_variable(Make&& make) {
  Json properties = Json::object();
  for (const config::Variable& variable : config::registry()) {
    if (!variable.fixed) properties[variable.name] = make(variable);
  }
  return closed_map(properties);
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
  Json map = closed_map(properties);
  if (!required.empty()) map["required"] = required;
  return map;
}

Json shape_of(const config::Key& key, const std::vector<config::Key>& all) {
  switch (key.takes) {
    case config::Takes::value:
      return scalar_of(key.choices);
    case config::Takes::list:
      return list_of(any_scalar());
    case config::Takes::map:
      return map_of(key.name, all);
    case config::Takes::map_or_maps:
      return {{"anyOf", {map_of(key.name, all), list_of(map_of(key.name, all))}}};
    case config::Takes::name_or_map: {
      const auto preset = std::ranges::find(all, key.name + ".preset", &config::Key::name);
      return {{"anyOf", {scalar_of(preset->choices), map_of(key.name, all)}}};
    }
    case config::Takes::values:
      return per_variable(reference_to);
    case config::Takes::lists:
      return per_variable(swept);
    case config::Takes::maps:
      return list_of(per_variable(reference_to));
    case config::Takes::named_maps:
      return list_of({{"type", "object"}, {"additionalProperties", per_variable(reference_to)}});
  }
  return {};
}

Json schema_of(const config::Key& key, const std::vector<config::Key>& all) {
  Json shape = shape_of(key, all);
  if (!key.help.empty()) shape["description"] = described(key.help, key.allowed, key.fallback);
  return shape;
}

}  // namespace

std::string configuration_schema() {
  Json schema{{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", "a configuration of harness"}};
  schema.update(map_of("", config::keys()));
  Json definitions = Json::object();
  for (const config::Variable& variable : config::registry()) {
    if (!variable.fixed) definitions[variable.name] = value_of(variable);
  }
  schema["definitions"] = definitions;
  return schema.dump(1) + "\n";
}

}  // namespace harness::cli
