#include "config/experiment.h"

#include <array>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "config/fields.h"
#include "config/overrides.h"
#include "config/recorded.h"
#include "config/sections.h"
#include "config/text_file.h"

namespace harness::config {
namespace {

// Where an unknown key at the top may belong: "rounds" is nearest to "measure.rounds".
std::vector<std::string> nested_keys() {
  std::vector<std::string> nested;
  for (const Key& key : keys()) {
    if (key.name.find('.') != std::string::npos && !key.help.empty()) nested.push_back(key.name);
  }
  for (const Variable& v : registry()) {
    if (!v.fixed) nested.push_back("baseline." + v.name);
  }
  return nested;
}

// The name stands in file names and tables.
std::string parse_name(std::string_view text) {
  constexpr std::string_view fine = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  if (text.empty() || text.size() > 64 || text.front() == '.' ||
      text.find_first_not_of(fine) != std::string_view::npos) {
    fail("found {}; allowed: up to 64 letters, digits, '.', '_' and '-'", quote(text));
  }
  return std::string(text);
}

// Without a `name` the file's own serves, if it can be one.
std::string default_name(const std::string& path) {
  try {
    return parse_name(std::filesystem::path(path).stem().string());
  } catch (const Error&) {
    return "experiment";
  }
}

std::string parse_output(std::string_view text) {
  constexpr std::string_view example = "such as results/{name}-{date}.h5";
  if (text.empty() || text.ends_with('/')) fail("found {}; expected a file's path, {}", quote(text), example);
  const std::vector<std::string> placeholders{"name", "date"};
  for (std::size_t at = 0; (at = text.find_first_of("{}", at)) != std::string_view::npos;) {
    const std::size_t end = text.find_first_of("{}", at + 1);
    if (text[at] == '}' || end == std::string_view::npos || text[end] == '{') {
      fail("found {}, which has an unmatched brace; expected a file's path, {}", quote(text), example);
    }
    const std::string_view inside = text.substr(at + 1, end - at - 1);
    if (inside != "name" && inside != "date") {
      const std::string near = nearest(inside, placeholders);
      fail("found {{{}}}; allowed: {{name}}, {{date}}{}", inside, near.empty() ? "" : did_you_mean("{" + near + "}"));
    }
    at = end + 1;
  }
  return std::string(text);
}

double parse_peak(std::string_view text) {
  const double flops = parse_flops(text);
  if (!(flops > 0)) fail("found {}; allowed: a rate above 0, such as 989 TFLOP/s", quote(text));
  return flops;
}

Fabric read_fabric(const YamlNode& node, const std::string& key, Problems& problems) {
  Fabric fabric;
  const auto rate = [](double& into) { return [&into](std::string_view text) { into = parse_bandwidth(text); }; };
  const std::string allowed = "a bandwidth such as 450 GB/s";
  const std::array<Field, 2> fields{{{.key = "rank",
                                      .parse = rate(fabric.rank_bytes_per_s),
                                      .help = "of one rank towards the others of its node",
                                      .allowed = allowed,
                                      .fallback = "the hardware file's nvlink"},
                                     {.key = "node",
                                      .parse = rate(fabric.node_bytes_per_s),
                                      .help = "of one node towards the others, all its ranks together",
                                      .allowed = allowed,
                                      .fallback = "not known"}}};
  read_map(problems, node, key, fields);
  return fabric;
}

void read_experiment(const YamlNode& root, Experiment& e, Problems& problems) {
  VariableSections variables;
  const YamlNode*& baseline = variables.baseline;
  const auto hardware = [&](const YamlNode& node, const std::string& key) {
    const auto text = scalar_of(problems, node, key, "the name of a file in hardware/, or a path, or none");
    e.without_hardware = text == "none";
    if (text && !e.without_hardware) e.hardware = read_hardware(*text, node.place, e.path, problems);
  };
  const Variable& workload = *find_variable("workload");
  const auto read_workload = [&](std::string_view text) { workload.parse(e.baseline, text); };
  // Read twice: here to know whether a model is needed, below for what is wrong with it.
  bool workload_known = true;
  if (const YamlNode* given = root.find("workload"); given != nullptr && given->kind == YamlNode::Kind::scalar) {
    try {
      read_workload(given->scalar);
    } catch (const Error&) {
      workload_known = false;
    }
  }
  const auto fabric = [&](const auto& node, const auto& key) { e.fabric = read_fabric(node, key, problems); };
  const auto model = [&](const auto& node, const auto& key) { e.model = read_model(node, key, problems); };
  const auto measure = [&](const auto& node, const auto& key) { e.measure = read_measure(node, key, problems); };
  const auto cost = [&](const auto& node, const auto& key) { e.cost = read_cost(node, key, problems); };
  const std::array<Field, 14> fields{
      {{.key = "name",
        .parse = [&](auto text) { e.name = parse_name(text); },
        .help = "name of the sweep, and of its result file",
        .allowed = "up to 64 letters or digits or '.', '_' and '-'",
        .fallback = "the file's name"},
       {.key = "workload",
        .parse = read_workload,
        .help = workload.help,
        .allowed = workload.allowed,
        .fallback = workload.print({})},
       {.key = "backend",
        .parse = [&](auto text) { e.backend = parse_backend(text); },
        .required = true,
        .help = "what computes: cpu (the cores of the host) or cuda (its GPUs)",
        .allowed = "cpu, cuda"},
       {.key = "model",
        .parse = {},
        .read = model,
        .required = workload_known && e.baseline.workload == training_workload,
        .help = "a preset, or layers, hidden, heads, vocab and sequence; required for gpt",
        .allowed = join(model_preset_names(), ", "),
        .takes = Takes::name_or_map},
       {.key = "hardware",
        .parse = {},
        .read = hardware,
        .help = "the GPU's peak rates and memory; none: no MFU",
        .allowed = "a file's name in hardware/, a path, or none",
        .fallback = "found by the GPU's name"},
       {.key = "peak_flops",
        .parse = [&](auto text) { e.peak_flops = parse_peak(text); },
        .help = "dense peak of one rank, instead of the hardware file's",
        .allowed = "a rate such as 989 TFLOP/s"},
       {.key = "fabric",
        .parse = {},
        .read = fabric,
        .help = "bandwidth in one direction: rank in a node, node between nodes"},
       {.key = "baseline",
        .parse = {},
        .read = [&](const auto& node, const auto&) { baseline = &node; },
        .required = true,
        .help = "one value per variable",
        .fallback = "each variable's default",
        .takes = Takes::values},
       {.key = "sweep",
        .parse = {},
        .read = [&](const auto& node, const auto&) { variables.sweep = &node; },
        .help = "the values to try; each is one case",
        .takes = Takes::lists},
       {.key = "combine",
        .parse = {},
        .read = [&](const auto& node, const auto&) { variables.combine = &node; },
        .help = "a list of maps: several variables changed together, each map one case",
        .fallback = "none",
        .takes = Takes::maps},
       {.key = "ladder",
        .parse = {},
        .read = [&](const auto& node, const auto&) { variables.ladder = &node; },
        .help = "a list of fixes, name: {variable: value, …}, one on top of the other",
        .fallback = "none",
        .takes = Takes::named_maps},
       {.key = "measure", .parse = {}, .read = measure, .help = "how to measure"},
       {.key = "cost",
        .parse = {},
        .read = cost,
        .help = "per_gpu_hour, currency and run.tokens: what a change is worth",
        .fallback = "none"},
       {.key = "output",
        .parse = [&](auto text) { e.output = parse_output(text); },
        .help = "the result file; {name} and {date} are replaced",
        .allowed = "a file's path",
        .fallback = Experiment().output}}};
  const auto elsewhere = problems.listing != nullptr ? std::vector<std::string>() : nested_keys();
  if (!read_map(problems, root, "", fields, elsewhere)) return;
  if (baseline != nullptr) {
    const YamlNode* layout = baseline->find("layout");
    Place place = layout != nullptr ? layout->place : baseline->place;
    for (const program::Axis axis : program::set_axes) {  // an override of a part comes later than the rest
      const YamlNode* given = layout != nullptr ? layout->find(program::row_of(axis).key) : nullptr;
      if (given != nullptr && given->place.source > place.source) place = given->place;
    }
    e.baseline_place = problems.where(place);
  }
  if (e.backend == BackendKind::cuda && baseline != nullptr && baseline->find("precision") == nullptr) {
    e.warnings.emplace_back(
        "precision is not given, so it is fp32; training on GPUs mostly runs in bf16, whose peak is many times as high "
        "(baseline: {precision: bf16})");
  }
  read_variables(variables, e, problems);
}

constexpr int min_rounds_for_verdicts = 6;

// Without a text, that of the file.
Experiment load(std::optional<std::string> text, const std::string& path, const std::vector<std::string>& overrides) {
  Experiment e;
  e.path = path;
  e.overrides = overrides;
  e.name = default_name(path);
  Problems problems;
  const int source = problems.add_file(path);
  if (!text) text = read_text_file(path, source, problems);
  auto root = text ? parse_yaml(*text, source, problems) : std::nullopt;
  if (root) {
    e.text = *text;
    if (root->kind == YamlNode::Kind::map) apply_overrides(*root, overrides, problems);
    read_experiment(*root, e, problems);
  }
  problems.throw_if_any();
  if (e.measure.rounds < min_rounds_for_verdicts) {
    e.warnings.push_back(fmt::format("measure.rounds is {}: below {} rounds most effects stay unresolved; use 12",
                                     e.measure.rounds, min_rounds_for_verdicts));
  }
  if (e.measure.share_gpus && e.backend == BackendKind::cuda) {
    e.warnings.emplace_back(
        "measure.share_gpus is true: several ranks may have run on one GPU, so these times show that the run works, "
        "but not how fast it is");
  }
  return e;
}

}  // namespace

std::vector<Key> keys() {
  std::vector<Key> found;
  Problems unread;
  unread.add_file("");
  unread.listing = &found;
  Experiment nowhere;
  read_experiment({}, nowhere, unread);
  return found;
}

Experiment load_experiment(const std::string& path, const std::vector<std::string>& overrides) {
  return load({}, path, overrides);
}

Experiment load_recorded(const std::string& text, const std::string& path, const std::vector<std::string>& overrides) {
  return load(text, path, overrides);
}

}  // namespace harness::config
