#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "config/combine.h"
#include "config/env_value.h"
#include "config/fields.h"
#include "config/sections.h"

namespace harness::config {
namespace {

// A compound value is read part by part, so that a problem has the place of its part.
bool read_parts(const Variable& variable, const YamlNode& node, const std::string& key, Settings& settings,
                Problems& problems) {
  const auto parse = [&](std::string_view text) { variable.parse(settings, text); };
  const bool compound = !variable.parts.empty() || variable.free_parts;
  if (!compound || node.kind != YamlNode::Kind::map) {
    const auto text = scalar_of(problems, node, key, variable.allowed);
    return text && parse_or_report(problems, node.place, key, *text, parse);
  }
  if (node.children.empty() && !variable.free_parts) {
    problems.add(node.place, key, fmt::format("found an empty map; allowed: {}", variable.allowed));
    return false;
  }
  bool good = true;
  if (variable.free_parts) {
    for (const YamlNode& child : node.children) {
      const std::string path = dotted(key, child.key);
      const auto text = scalar_of(problems, child, path, "one value");
      const auto parse_entry = [&](std::string_view value) {
        check_env_entry(child.key, value);
        parse(print_env({{child.key, std::string(value)}}));
      };
      good = text && parse_or_report(problems, child.place, path, *text, parse_entry) && good;
    }
    return good;
  }
  std::vector<Field> fields;
  for (const std::string& part : variable.parts) {
    const auto read_part = [&](const YamlNode& value, const std::string& path) {
      const auto text = scalar_of(problems, value, path, "a whole number");
      good = text && parse_or_report(problems, value.place, path, fmt::format("{{{}: {}}}", value.key, *text), parse) &&
             good;
    };
    fields.push_back({.key = part, .parse = {}, .read = read_part});
  }
  for (const YamlNode& child : node.children) {
    good = good && std::find(variable.parts.begin(), variable.parts.end(), child.key) != variable.parts.end();
  }
  read_map(problems, node, key, fields);
  return good;
}

// Reads one value of a variable into `settings`.
bool read_value(const Variable& variable, const YamlNode& node, const std::string& key, BackendKind backend,
                Settings& settings, Problems& problems) {
  if (!read_parts(variable, node, key, settings, problems)) return false;
  const std::string why = variable.refused_by ? variable.refused_by(settings, backend) : "";
  if (!why.empty()) problems.add(node.place, key, why);
  return why.empty();
}

// The workloads that do something with a variable, and what to do about one that does not.
std::string unhonoured_text(const Variable& variable, const std::string& workload, bool needs_model) {
  return fmt::format("workload {} does not honour it; workloads that do: {}{}", workload,
                     join(variable.workloads, ", "),
                     needs_model ? "; with a `model`, it may be set here to describe that model's step" : "");
}

// False, and a problem, if the workload or the backend of the experiment does nothing with this variable. In a baseline
// with a model, what the training step honours says which sizes `from_model` finds.
bool honoured(const Variable& variable, const YamlNode& node, const std::string& key, const Experiment& experiment,
              bool swept, Problems& problems) {
  const BackendKind backend = experiment.backend;
  const std::string& workload = experiment.baseline.workload;
  const bool of_training = variable.honoured_by(training_workload);
  const bool describes_model = !swept && of_training && experiment.model.layers > 0;
  if (!variable.honoured_by(workload) && !describes_model) {
    problems.add(node.key_place, key, unhonoured_text(variable, workload, !swept && of_training));
    return false;
  }
  const auto& backends = variable.backends;
  if (std::find(backends.begin(), backends.end(), backend) != backends.end()) return true;
  std::vector<std::string> names;
  names.reserve(backends.size());
  for (const BackendKind kind : backends) names.emplace_back(name_of(kind));
  problems.add(node.key_place, key,
               fmt::format("backend {} does not honour it; backends that do: {}", name_of(backend), join(names, ", ")));
  return false;
}

void read_changes(const Variable& variable, const YamlNode& node, const std::string& key, bool baseline_known,
                  Experiment& experiment, Problems& problems) {
  if (variable.from_model && node.kind == YamlNode::Kind::scalar && node.scalar == "from_model") {
    if (experiment.model.layers == 0) {
      problems.add(node.place, key, "from_model takes its values from a model's training step; add a `model`");
      return;
    }
    experiment.changes.push_back({variable.name, "from_model", experiment.baseline, problems.where(node.place)});
    return;
  }
  if (node.kind != YamlNode::Kind::sequence) {
    const bool scalar = node.kind == YamlNode::Kind::scalar;
    problems.add(node.place, key,
                 fmt::format("found {}; expected a list of values to try, such as [{}]", describe(node),
                             scalar ? node.scalar : variable.print(experiment.baseline)));
    return;
  }
  if (node.children.empty()) {
    problems.add(node.place, key, fmt::format("found an empty list; name the values to try: {}", variable.allowed));
    return;
  }
  std::vector<std::string> tried;
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    const YamlNode& item = node.children[i];
    const std::string path = fmt::format("{}[{}]", key, i);
    Settings settings = experiment.baseline;
    if (!read_value(variable, item, path, experiment.backend, settings, problems)) continue;
    const std::string value = variable.print(settings);
    if (std::find(tried.begin(), tried.end(), value) != tried.end()) {
      problems.add(item.place, path, fmt::format("{} is in the list twice; keep one", value));
    } else if (baseline_known && value == variable.print(experiment.baseline)) {
      // Everybody writes [1, 2, 4] for a baseline of 2: it is measured as the baseline.
    } else {
      experiment.changes.push_back({variable.name, value, std::move(settings), ""});
    }
    tried.push_back(value);
  }
}

// One map of several variables with a value each.
void read_combination(const YamlNode& node, const std::string& key, Experiment& experiment, Problems& problems) {
  Change change{std::string(combination), "", experiment.baseline};
  std::vector<std::string> parts;
  bool good = true;
  std::vector<Field> fields;
  for (const Variable& variable : registry()) {
    if (variable.fixed) continue;
    const auto read = [&](const YamlNode& value, const std::string& path) {
      if (!honoured(variable, value, path, experiment, true, problems) ||
          !read_value(variable, value, path, experiment.backend, change.settings, problems)) {
        good = false;
      } else if (!changes(change, variable, experiment.baseline)) {
        problems.add(value.place, path, "this is the baseline's value; leave it out");
        good = false;
      } else {
        parts.push_back(fmt::format("{}={}", variable.name, variable.print(change.settings)));
      }
    };
    fields.push_back({.key = variable.name, .parse = {}, .read = read});
  }
  if (!read_map(problems, node, key, fields) || !good) return;
  if (parts.size() < 2) {
    problems.add(node.place, key, "a combination changes two variables or more; a single one belongs under sweep");
    return;
  }
  change.value = join(parts, " + ");
  experiment.changes.push_back(std::move(change));
}

void read_combinations(const YamlNode& node, Experiment& experiment, Problems& problems) {
  if (node.kind != YamlNode::Kind::sequence || node.children.empty()) {
    problems.add(node.place, "combine",
                 fmt::format("found {}; expected a list of maps, such as [{{micro_batch_size: 4, precision: bf16}}]",
                             describe(node)));
    return;
  }
  for (std::size_t i = 0; i < node.children.size(); ++i)
    read_combination(node.children[i], fmt::format("combine[{}]", i), experiment, problems);
}

void read_sweep(const YamlNode& sweep, const std::set<std::string>& unknown, Experiment& experiment,
                Problems& problems) {
  if (sweep.kind == YamlNode::Kind::map && sweep.children.empty()) {
    problems.add(sweep.place, "sweep", "found an empty map; name what to change, such as {micro_batch_size: [2, 4]}");
    return;
  }
  std::vector<Field> fields;
  for (const Variable& variable : registry()) {
    if (variable.fixed) continue;
    const auto read = [&](const YamlNode& value, const std::string& key) {
      if (!honoured(variable, value, key, experiment, true, problems)) return;
      read_changes(variable, value, key, !unknown.contains(variable.name), experiment, problems);
    };
    fields.push_back({.key = variable.name, .parse = {}, .read = read});
  }
  read_map(problems, sweep, "sweep", fields);
  // Cases stand in the order of the file, not of the registry.
  if (sweep.kind != YamlNode::Kind::map) return;
  const auto position = [&](const Change& change) { return sweep.find(change.variable) - sweep.children.data(); };
  std::stable_sort(experiment.changes.begin(), experiment.changes.end(),
                   [&](const Change& a, const Change& b) { return position(a) < position(b); });
}

}  // namespace

void read_variables(const YamlNode* baseline, const YamlNode* sweep, const YamlNode* combine, Experiment& experiment,
                    Problems& problems) {
  std::set<std::string> unknown;  // variables whose baseline could not be read
  std::vector<Field> fields;
  for (const Variable& variable : registry()) {
    if (variable.fixed) continue;
    const auto read_baseline = [&](const YamlNode& value, const std::string& key) {
      const bool good = honoured(variable, value, key, experiment, false, problems) &&
                        read_value(variable, value, key, experiment.backend, experiment.baseline, problems);
      if (!good) unknown.insert(variable.name);
    };
    fields.push_back({.key = variable.name, .parse = {}, .read = read_baseline});
  }
  if (baseline != nullptr) read_map(problems, *baseline, "baseline", fields);

  if (sweep != nullptr) read_sweep(*sweep, unknown, experiment, problems);
  if (combine != nullptr) read_combinations(*combine, experiment, problems);
}

}  // namespace harness::config
