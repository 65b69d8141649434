// The schema for editors tells good configurations from bad ones.
#include "cli/verbs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "config/yaml_tree.h"
#include "support/files.h"
#include "support/paths.h"

namespace harness::cli {
namespace {

using Json = nlohmann::json;
using config::YamlNode;
using ::testing::HasSubstr;

const std::filesystem::path configs = std::filesystem::path(test::source_dir()) / "configs";

// A scalar as YAML's core schema types it.
Json typed(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  const Json number = Json::parse(text, nullptr, false);
  return number.is_number() ? number : Json(text);
}

std::string type_of(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::map) return "object";
  if (node.kind == YamlNode::Kind::sequence) return "array";
  if (node.kind == YamlNode::Kind::null) return "null";
  const Json value = typed(node.scalar);
  if (value.is_boolean()) return "boolean";
  return value.is_number() ? "number" : "string";
}

// The part of JSON Schema that the program prints.
class Validator {
 public:
  explicit Validator(const std::string& schema) : root_(Json::parse(schema)) {}

  // "" or the first thing that is wrong.
  std::string complaint(const std::string& yaml) const {
    config::Problems problems;
    const auto node = config::parse_yaml(yaml, problems.add_file("test"), problems);
    problems.throw_if_any();
    return check(root_, *node, "");
  }

 private:
  std::string check(const Json& schema, const YamlNode& node, const std::string& at) const {
    static const std::set<std::string> known{
        "$ref",  "$schema",  "additionalProperties", "anyOf",    "definitions", "description", "enum",
        "items", "minItems", "properties",           "required", "title",       "type"};
    for (const auto& [word, value] : schema.items()) {
      if (!known.contains(word)) return at + ": the validator does not know " + word;
    }
    if (schema.contains("$ref")) {
      return check(root_.at(Json::json_pointer(schema["$ref"].get<std::string>().substr(1))), node, at);
    }
    if (schema.contains("type")) {
      const Json& type = schema["type"];
      const Json types = type.is_array() ? type : Json::array({type});
      if (std::ranges::find(types, Json(type_of(node))) == types.end()) return at + " is of type " + type_of(node);
    }
    if (schema.contains("enum")) {
      const Json& words = schema["enum"];
      const bool is_one =
          node.kind == YamlNode::Kind::scalar && std::ranges::find(words, typed(node.scalar)) != words.end();
      if (!is_one) return at + " is none of " + words.dump();
    }
    if (schema.contains("anyOf")) {
      const auto fits = [&](const Json& choice) { return check(choice, node, at).empty(); };
      if (std::ranges::none_of(schema["anyOf"], fits)) return at + " fits nothing";
    }
    if (node.kind == YamlNode::Kind::map) return check_map(schema, node, at);
    return node.kind == YamlNode::Kind::sequence ? check_list(schema, node, at) : "";
  }

  std::string check_map(const Json& schema, const YamlNode& node, const std::string& at) const {
    for (const Json& key : schema.value("required", Json::array())) {
      if (node.find(key.get<std::string>()) == nullptr) return at + "." + key.get<std::string>() + " is missing";
    }
    for (const YamlNode& child : node.children) {
      const std::string path = at + "." + child.key;
      const Json properties = schema.value("properties", Json::object());
      const Json other = schema.value("additionalProperties", Json(true));
      std::string wrong;
      if (properties.contains(child.key)) {
        wrong = check(properties[child.key], child, path);
      } else if (other.is_object()) {
        wrong = check(other, child, path);
      } else if (other == false) {
        wrong = path + " is not allowed";
      }
      if (!wrong.empty()) return wrong;
    }
    return "";
  }

  std::string check_list(const Json& schema, const YamlNode& node, const std::string& at) const {
    if (std::ssize(node.children) < schema.value("minItems", 0)) return at + " is empty";
    if (!schema.contains("items")) return "";
    for (const YamlNode& child : node.children) {
      if (std::string wrong = check(schema["items"], child, at + "[]"); !wrong.empty()) return wrong;
    }
    return "";
  }

  Json root_;
};

TEST(Schema, EveryShippedConfigurationFits) {
  const Validator validator(configuration_schema());
  int checked = 0;
  for (const auto& folder : {configs, configs / "scenarios"}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() != ".yaml") continue;
      EXPECT_EQ(validator.complaint(test::text_of(entry.path())), "") << entry.path();
      ++checked;
    }
  }
  EXPECT_GE(checked, 8);
}

TEST(Schema, WhatTheProgramRefusesAnEditorMarks) {
  const Validator validator(configuration_schema());
  const auto complaint = [&](const std::string& lines) {
    return validator.complaint("backend: cpu\nmodel: gpt3-125m\n" + lines);
  };
  EXPECT_EQ(complaint("baseline: {bucket_size: 1 MiB}\nsweep: {threads: [auto, 2]}"), "");
  EXPECT_EQ(complaint("baseline: {}\nmeasure: {weight: {ranks: 0.25}, looks: [5, 8], until: settled, steps: auto}"),
            "");
  EXPECT_EQ(complaint("baseline: {}\ncombine: [{precision: bf16, env: {A_NAME: 1}}]"), "");
  EXPECT_EQ(complaint("baseline: {micro_batchsize: 2}"), ".baseline.micro_batchsize is not allowed");
  EXPECT_EQ(complaint("baseline: {}\nsweeps: {}"), ".sweeps is not allowed");
  EXPECT_EQ(complaint("baseline: {}\nmeasure: {round: 2}"), ".measure.round is not allowed");
  EXPECT_EQ(complaint("baseline: {layout: {tensor: 2}}"), ".baseline.layout.tensor is not allowed");
  EXPECT_EQ(complaint("baseline: {}\nsweep: {workload: [gemm]}"), ".sweep.workload is not allowed");
  EXPECT_THAT(complaint("baseline: {precision: fp23}"), HasSubstr(".baseline.precision is none of"));
  EXPECT_EQ(complaint("baseline: {}\nsweep: {precision: bf16}"), ".sweep.precision is of type string");
  EXPECT_EQ(complaint("sweep: {precision: [bf16]}"), ".baseline is missing");
  EXPECT_EQ(complaint("baseline: {}\ncost: {currency: EUR}"), ".cost.per_gpu_hour is missing");
}

}  // namespace
}  // namespace harness::cli
