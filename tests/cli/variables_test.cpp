#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "cli/verbs.h"
#include "config/choice.h"
#include "config/registry.h"
#include "config/yaml_tree.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/paths.h"

// `variables`, and the schema for editors, which tells good configurations from bad ones.

namespace harness::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string output_of(const VariablesOptions& options) {
  std::ostringstream out;
  EXPECT_EQ(variables(options, out), 0);
  return out.str();
}

TEST(Variables, TheListHasEveryVariableAndEveryKey) {
  const std::string text = output_of({});
  for (const config::Variable& v : config::registry()) EXPECT_THAT(text, HasSubstr("\n" + v.name + "\n"));
  for (const config::Key& key : config::keys()) EXPECT_THAT(text, HasSubstr("\n" + key.name + "\n"));
}

TEST(Variables, AnEntryIsWhole) {
  EXPECT_EQ(output_of({.name = "allreduce_algorithm"}),
            "allreduce_algorithm\n"
            "  Gloo's algorithm for all-reduces above 4 KiB (NCCL's is nccl_algo)\n"
            "  values     ring, halving_doubling\n"
            "  default    ring\n"
            "  backends   cpu\n"
            "  workloads  gpt, collective\n"
            "  swept      yes\n"
            "  example    sweep: {allreduce_algorithm: [halving_doubling]}\n");
  EXPECT_THAT(output_of({.name = "nccl_algo"}), HasSubstr("sets       NCCL_ALGO in the workers' environment"));
  EXPECT_THAT(output_of({.name = "gemm"}), HasSubstr("also from_model"));
  EXPECT_THAT(output_of({.name = "workload"}), HasSubstr("no: the same for all cases"));
}

TEST(Variables, KeysAreFoundByTheirLastWordAndByTheirMap) {
  EXPECT_THAT(output_of({.name = "measure.rounds"}), AllOf(HasSubstr("1 to 10000"), HasSubstr("12; 40")));
  EXPECT_EQ(output_of({.name = "rounds"}), output_of({.name = "measure.rounds"}));
  EXPECT_THAT(output_of({.name = "cost"}), AllOf(HasSubstr("cost.per_gpu_hour"), HasSubstr("cost.run.tokens")));
  EXPECT_THAT(output_of({.name = "backend"}), HasSubstr("required   yes"));
}

TEST(Variables, AnUnknownNameGetsTheNearest) {
  const auto complaint = [](const std::string& name) { return test::error_of([&] { output_of({.name = name}); }); };
  EXPECT_THAT(complaint("bucket_sizes"), HasSubstr("did you mean bucket_size?"));
  EXPECT_THAT(complaint("measure.round"), HasSubstr("did you mean measure.rounds?"));
  EXPECT_THAT(complaint("smalest_effect"), HasSubstr("did you mean smallest_effect?"));
  EXPECT_THAT(complaint("tensor_parallel"), HasSubstr("it is a part of layout: layout: {tensor_parallel: 2}"));
  EXPECT_THAT(complaint("cp"), HasSubstr("here it is layout.context_parallel"));
  EXPECT_THAT(complaint("sequence_length"), HasSubstr("here it is model.sequence"));
  EXPECT_THAT(complaint("seq_length"), HasSubstr("here it is model.sequence"));
  EXPECT_THAT(complaint("zzzzzzzz"), AllOf(HasSubstr("`harness variables` lists them"), Not(HasSubstr("did you"))));
}

TEST(Variables, TheSchemaIsOfAllVariables) {
  EXPECT_THAT(output_of({.name = "", .schema = true}), ::testing::StartsWith("{\n \"$schema\""));
  EXPECT_EQ(test::error_of([] { output_of({.name = "ranks", .schema = true}); }),
            "--schema writes all variables; leave out 'ranks'");
}

// HARNESS_UPDATE_GOLDEN=1 writes the page.
TEST(Variables, ThePageIsTheProgramsOutput) {
  const std::string path = test::source_dir() + "/docs/variables.md", text = output_of({.name = "", .format = "md"});
  if (std::getenv("HARNESS_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  EXPECT_EQ(test::text_of(path), text) << "run `harness variables --format md > docs/variables.md`";
}

using Json = nlohmann::json;
using config::YamlNode;

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
  EXPECT_EQ(complaint("baseline: {}\nmeasure: {looks: [5, 8], until: settled, steps: auto}"), "");
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
