#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "config/choice.h"
#include "config/files.h"
#include "config/registry.h"
#include "report/document.h"
#include "said.h"

// `variables`, and the schema for editors, which must tell valid configurations from invalid ones.

namespace harness::cli {
namespace {

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
  for (const std::string& line : split_text(output_of({}), "\n")) EXPECT_LE(report::columns_of(line), 80u) << line;
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
  EXPECT_THAT(complaint("seq_length"), HasSubstr("here it is model.sequence"));
  EXPECT_THAT(complaint("zzzzzzzz"), AllOf(HasSubstr("`harness variables` lists them"), Not(HasSubstr("did you"))));
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

// Types a scalar as YAML's core schema does.
Json typed(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::map) return Json::object();
  if (node.kind == YamlNode::Kind::sequence) return Json::array();
  if (node.kind == YamlNode::Kind::null) return nullptr;
  if (node.scalar == "true" || node.scalar == "false") return node.scalar == "true";
  const Json number = Json::parse(node.scalar, nullptr, false);
  return number.is_number() ? number : Json(node.scalar);
}

// Returns "" or the first violation, for the subset of JSON Schema that the program prints.
std::string complaint_of(const Json& schema, const YamlNode& node, const std::string& at) {
  const Json value = typed(node), type = schema.value("type", Json(value.type_name()));
  if (type.dump().find(value.type_name()) == std::string::npos) return at + " is of type " + value.type_name();
  if (schema.contains("enum") && std::ranges::find(schema["enum"], value) == schema["enum"].end())
    return at + " is none of " + schema["enum"].dump();
  const auto fits = [&](const Json& choice) { return complaint_of(choice, node, at).empty(); };
  if (schema.contains("anyOf") && std::ranges::none_of(schema["anyOf"], fits)) return at + " fits nothing";
  for (const Json& key : schema.value("required", Json::array())) {
    if (node.find(key.get<std::string>()) == nullptr) return at + "." + key.get<std::string>() + " is missing";
  }
  const Json properties = schema.value("properties", Json::object()),
             others = schema.value("additionalProperties", Json());
  for (const YamlNode& child : node.children) {
    const bool in_map = node.kind == YamlNode::Kind::map;
    const std::string place = in_map ? at + "." + child.key : at + "[]";
    if (in_map && !properties.contains(child.key) && others == false) return place + " is not allowed";
    const Json of_child = in_map ? properties.value(child.key, others) : schema.value("items", Json());
    if (!of_child.is_object()) continue;
    if (std::string wrong = complaint_of(of_child, child, place); !wrong.empty()) return wrong;
  }
  return "";
}

std::string complaint_of(const std::string& yaml) {
  config::Problems problems;
  const auto node = config::parse_yaml(yaml, problems.add_file("test"), problems);
  problems.throw_if_any();
  return complaint_of(Json::parse(configuration_schema()), *node, "");
}

TEST(Schema, EveryShippedConfigurationFits) {
  int checked = 0;
  for (const auto& folder : {configs, configs / "scenarios"}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() != ".yaml") continue;
      EXPECT_EQ(complaint_of(test::text_of(entry.path())), "") << entry.path();
      ++checked;
    }
  }
  EXPECT_GE(checked, 8);
}

TEST(Schema, WhatTheProgramRefusesAnEditorMarks) {
  const auto complaint = [](const std::string& lines) {
    return complaint_of("backend: cpu\nmodel: gpt3-125m\n" + lines);
  };
  EXPECT_EQ(complaint("baseline: {bucket_size: 1 MiB}\nsweep: {threads: [auto, 2]}"), "");
  EXPECT_EQ(complaint("baseline: {}\nmeasure: {until: settled, steps: auto}"), "");
  EXPECT_EQ(complaint("baseline: {layout: {tensor_parallel: 2}}\ncombine: [{env: {A_NAME: 1}}]"), "");
  EXPECT_EQ(complaint("baseline: {micro_batchsize: 2}"), ".baseline.micro_batchsize is not allowed");
  EXPECT_EQ(complaint("baseline: {}\nsweeps: {}"), ".sweeps is not allowed");
  EXPECT_EQ(complaint("baseline: {}\nmeasure: {round: 2}"), ".measure.round is not allowed");
  EXPECT_EQ(complaint("baseline: {}\nsweep: {workload: [gemm]}"), ".sweep.workload is not allowed");
  EXPECT_THAT(complaint("baseline: {precision: fp23}"), HasSubstr(".baseline.precision is none of"));
  EXPECT_EQ(complaint("baseline: {}\nsweep: {precision: bf16}"), ".sweep.precision is of type string");
  EXPECT_EQ(complaint("sweep: {precision: [bf16]}"), ".baseline is missing");
  EXPECT_EQ(complaint("baseline: {}\ncost: {currency: EUR}"), ".cost.per_gpu_hour is missing");
}

}  // namespace

}  // namespace harness::cli
