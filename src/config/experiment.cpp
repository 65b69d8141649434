#include "config/experiment.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/text.h"
#include "base/units.h"
#include "config/fields.h"
#include "config/files.h"

namespace harness::config {
namespace {

std::vector<std::string> known_keys() {
  std::vector<std::string> known = texts_of_all(keys(), [](const Key& key) { return key.name; });
  for (const Variable& v : registry()) {
    if (!v.fixed) known.push_back("baseline." + v.name);
  }
  return known;
}

// The name appears in file names and tables.
std::string parse_name(std::string_view text) {
  if (text.empty() || text.size() > 64 || text.front() == '.' || !has_only(text, "._-"))
    fail("found {}; allowed: up to 64 letters, digits, '.', '_' and '-'", quote(text));
  return std::string(text);
}

// The default of `name`: the file's own name, if it is valid.
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
  std::string rest(text);
  for (const std::string_view known : {"{name}", "{date}"}) rest = replaced_all(rest, known, "_");
  if (rest.find_first_of("{}") != std::string::npos)
    fail("found {}; only {{name}} and {{date}} may stand in braces, {}", quote(text), example);
  return std::string(text);
}

std::vector<Field> fabric_fields(Fabric& fabric) {
  const std::string allowed = "a bandwidth such as 450 GB/s or 400 Gbit/s";
  return {Field::scalar("rank", parsed_into(fabric.rank_bytes_per_s, parse_bandwidth),
                        "of one rank towards the others of its node", allowed, "the hardware file's nvlink"),
          Field::scalar("node", parsed_into(fabric.node_bytes_per_s, parse_bandwidth),
                        "of one node towards the others, all its ranks together", allowed,
                        "not known; of predictions: the hardware file's")};
}

std::vector<Field> cost_fields(Cost& cost) {
  return {Field::scalar("per_gpu_hour", parsed_into(cost.per_gpu_hour, parse_price), "price of a GPU for an hour",
                        "a price such as 2.50")
              .required(),
          Field::scalar("currency", parsed_into(cost.currency, parse_currency), "what the price is in",
                        "up to 8 letters, such as EUR", Cost().currency),
          Field::section("run",
                         {Field::scalar("tokens", parsed_into(cost.run_tokens, parse_tokens), "tokens of that run",
                                        "a number such as 300e9")
                              .required()},
                         "the training run that is planned")
              .required()};
}

// Returns all keys of a configuration in reading order. `root`: its tree, or an empty one to list the keys.
std::vector<Field> experiment_fields(const YamlNode& root, Experiment& e, Cost& cost, Problems& problems) {
  const auto hardware = [&](const YamlNode& node, const std::string& key) {
    const auto text = scalar_of(problems, node, key, "the name of a file in hardware/, or a path, or none");
    e.without_hardware = text == "none";
    if (text && !e.without_hardware) e.hardware = read_hardware(*text, node.place, e.path, problems);
  };
  const auto calibration = [&](const YamlNode& node, const std::string& key) {
    const auto text = scalar_of(problems, node, key, "the name of a file in calibration/, or a path");
    if (text) e.calibration = read_calibration(*text, node.place, e.path, problems);
  };
  const Variable& workload = *find_variable("workload");
  const auto read_workload = [&](std::string_view text) { workload.parse(e.baseline, text); };
  const YamlNode* given = root.find("workload");
  const bool needs_model =
      given == nullptr || given->kind != YamlNode::Kind::scalar || given->scalar == training_workload;
  return {
      Field::scalar("name", parsed_into(e.name, parse_name), "name of the sweep, and of its result file",
                    "up to 64 letters or digits or '.', '_' and '-'", "the file's name"),
      Field::choice("workload", read_workload, workload.help, workload.choices.words, workload.print({})),
      Field::choice("backend", parsed_into(e.backend, parse_backend),
                    "what computes: cpu (cores) or cuda (GPUs); sim predicts either", backend_names(), "")
          .required(),
      model_field(root.find("model"), e.model, problems).required(needs_model),
      Field::other("hardware", Takes::value, hardware, "a rank's peak rates, memory and links; none: no MFU",
                   "a file's name in hardware/, a path, or none", "found by the GPU's name"),
      Field::scalar("peak_flops", flops_into(e.peak_flops),
                    "dense peak of one rank at the baseline's precision, instead of the hardware file's",
                    "a rate such as 989 TFLOP/s"),
      Field::section("fabric", fabric_fields(e.fabric),
                     "bandwidth in one direction: rank in a node, node between nodes"),
      Field::other("calibration", Takes::value, calibration,
                   "of predictions: what a software gets of what the hardware promises",
                   "a file's name in calibration/, or a path", "the one that fits the layout"),
      faults_field(e.faults, problems),
      Field::other("baseline", Takes::values, {}, "one value per variable", "", "each variable's default").required(),
      Field::other("sweep", Takes::lists, {}, "the values to try; each is one case"),
      Field::other("combine", Takes::maps, {}, "a list of maps: several variables changed together, each map one case",
                   "", "none"),
      Field::other("ladder", Takes::named_maps, {},
                   "a list of fixes, name: {variable: value, …}, one on top of the other", "", "none"),
      measure_field(e.measure, problems),
      Field::section("cost", cost_fields(cost), "per_gpu_hour, currency and run.tokens: what a change is worth", "",
                     "none"),
      Field::scalar("output", parsed_into(e.output, parse_output), "the result file; {name} and {date} are replaced",
                    "a file's path", Experiment().output),
  };
}

// A fault must be stated before it can be mended, and only a prediction can state it.
void check_faults(const YamlNode& root, const Experiment& e, Problems& problems) {
  const YamlNode* given = root.find("faults");
  if (problems.concern("backend") || problems.concern("faults")) return;
  if (given != nullptr && !traits_of(e.backend).predicts())
    return problems.add(given->key_place, "faults",
                        fmt::format("backend {} measures a cluster as it is; faults are for predictions (backend: sim)",
                                    name_of(e.backend)));
  std::set<Fault> named;
  const auto add = [&](const Settings& s) {
    if (print_mended(s.mended) != "all") named.insert(s.mended.begin(), s.mended.end());
  };
  add(e.baseline);
  for (const Change& change : e.changes) add(change.settings);
  for (const Fault fault : named) {
    if (e.faults.without({fault}) != e.faults || problems.concern(fmt::format("faults.{}", name_of(fault)))) continue;
    problems.add(
        given != nullptr ? given->place : root.place, "faults",
        fmt::format("{} is mended by a case, but is not among the faults; add it or mend another", name_of(fault)));
  }
}

void read_experiment(const YamlNode& root, Experiment& e, Problems& problems) {
  Cost cost;
  problems.known_keys = known_keys();
  if (!read_map(problems, root, "", experiment_fields(root, e, cost, problems))) return;
  if (cost.per_gpu_hour > 0 && cost.run_tokens > 0) e.cost = cost;
  const YamlNode* baseline = root.find("baseline");
  if (baseline != nullptr) {
    const YamlNode* layout = baseline->find("layout");
    Place place = layout != nullptr ? layout->place : baseline->place;
    for (const YamlNode& part : layout != nullptr ? layout->children : std::vector<YamlNode>()) {
      if (part.place.source > place.source) place = part.place;  // an override comes later than the rest
    }
    e.baseline_place = problems.where(place);
  }
  if (traits_of(e.backend).ranks_are_gpus && baseline != nullptr && baseline->find("precision") == nullptr) {
    e.warnings.emplace_back(
        "precision is not given, so it is fp32; training on GPUs mostly runs in bf16, whose peak is many times as high "
        "(baseline: {precision: bf16})");
  }
  read_variables(root, e, problems);
  e.names_calibration = e.calibration.has_value();
  if (traits_of(e.backend).predicts() && !e.calibration && !problems.concern("calibration"))
    e.calibration = read_calibration(usual_calibration(e.baseline).file, root.place, e.path, problems);
  check_faults(root, e, problems);
}

}  // namespace

std::vector<Key> keys() {
  std::vector<Key> found;
  Problems none;
  Experiment nowhere;
  Cost cost;
  list_keys(experiment_fields({}, nowhere, cost, none), "", found);
  return found;
}

Experiment load_experiment(const std::string& path, const std::vector<std::string>& overrides,
                           std::optional<std::string> text) {
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
  if (const BackendTraits& traits = traits_of(e.backend);
      e.measure.share_gpus && traits.ranks_are_gpus && !traits.predicts()) {
    e.warnings.emplace_back(
        "measure.share_gpus is true: several ranks may have run on one GPU, so these times show that the run works, "
        "but not how fast it is");
  }
  return e;
}

std::string case_name(const Change& change) {
  return change.variable == combination ? change.value : fmt::format("{}={}", change.variable, change.value);
}

program::FusedSet fused_for(const Experiment& experiment, const Settings& settings) {
  if (!traits_of(experiment.backend).predicts()) return fused_for(experiment.backend, settings);
  return settings.fusion ? experiment.calibration->software.fused : 0;
}

BackendKind stands_for(const Experiment& experiment) {
  const BackendTraits& traits = traits_of(experiment.backend);
  return traits.predicts() && experiment.calibration ? experiment.calibration->backend : traits.stands_for;
}

bool changes(const Change& change, const Variable& variable, const Settings& baseline) {
  return variable.print(change.settings) != variable.print(baseline);
}

std::string parse_currency(std::string_view text) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  if (text.empty() || text.size() > 8 || text.find_first_not_of(letters) != std::string_view::npos) {
    fail("found {}; allowed: up to 8 letters, such as USD or EUR", quote(text));
  }
  return std::string(text);
}

double parse_price(std::string_view text) {
  return parse_if(text, parse_real, is_above_zero, "a price of a GPU for an hour above 0, such as 2.50");
}

double parse_tokens(std::string_view text) {
  return parse_if(text, parse_real, is_above_zero, "a number of tokens above 0, such as 300e9");
}

std::optional<Cost> cost_of_text(const std::string& text, std::span<const std::string> overrides) {
  try {
    Problems problems;
    const int source = problems.add_file("configuration");
    if (!check_text(text, source, problems)) return {};
    auto root = parse_yaml(text, source, problems);
    if (!root || root->kind != YamlNode::Kind::map) return {};
    apply_overrides(*root, overrides, problems);
    const YamlNode* node = root->find("cost");
    if (node == nullptr || !problems.empty()) return {};
    Cost cost;
    read_map(problems, *node, "cost", cost_fields(cost));
    return problems.empty() ? std::optional(cost) : std::nullopt;
  } catch (const Error&) {
    return {};
  }
}

}  // namespace harness::config
