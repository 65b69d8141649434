#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "config/experiment.h"
#include "config/fields.h"
#include "config/registry.h"

namespace harness::config {
namespace {

constexpr std::string_view range_dots = "..";

// Whether the parts are a value together. Each may be none beside the others' values before: 12 heads after 8 kv_heads.
bool parse_together(const Variable& variable, const YamlNode& node, Settings& settings) {
  NameValues parts;
  for (const YamlNode& part : node.children) {
    const bool known = std::ranges::find(variable.parts, part.key) != variable.parts.end();
    if (!known || part.kind != YamlNode::Kind::scalar) return false;
    parts.emplace_back(part.key, part.scalar);
  }
  try {
    variable.parse(settings, print_map(parts));
  } catch (const Error&) {
    return false;
  }
  return true;
}

// Reads a compound value part by part, so that a problem has the place of its part.
bool read_parts(const Variable& variable, const YamlNode& node, const std::string& key, Settings& settings,
                Problems& problems) {
  const bool compound = !variable.parts.empty() || variable.free_parts;
  if (!compound || node.kind != YamlNode::Kind::map) {
    const auto text = scalar_of(problems, node, key, variable.allowed);
    const auto parse = [&](std::string_view value) { variable.parse(settings, value); };
    return text && parse_or_report(problems, node.place, key, *text, parse);
  }
  if (node.children.empty() && !variable.free_parts) {
    problems.add(node.place, key, fmt::format("found an empty map; allowed: {}", variable.allowed));
    return false;
  }
  bool good = true;
  const auto read_part = [&](const YamlNode& part, const std::string& path) {
    const auto text = scalar_of(problems, part, path, variable.free_parts ? "one value" : "a whole number");
    const auto parse = [&](std::string_view value) {
      if (variable.free_parts) check_env_entry(part.key, value);
      variable.parse(settings, print_map({{part.key, std::string(value)}}));
    };
    good = text && parse_or_report(problems, part.place, path, *text, parse) && good;
  };
  if (variable.free_parts) {
    for (const YamlNode& part : node.children) read_part(part, dotted(key, part.key));
    return good;
  }
  const Problems problems_before = problems;
  Settings together = settings;
  std::vector<Field> fields;
  for (const std::string& part : variable.parts) fields.push_back(Field::other(part, Takes::value, read_part));
  for (const YamlNode& child : node.children) {
    good = good && std::ranges::find(variable.parts, child.key) != variable.parts.end();
  }
  read_map(problems, node, key, fields);
  if (!parse_together(variable, node, together)) return good;
  if (!good) problems = problems_before;
  settings = std::move(together);
  return true;
}

// Reads one value of a variable into `settings`.
bool read_value(const Variable& variable, const YamlNode& node, const std::string& key, BackendKind backend,
                Settings& settings, Problems& problems) {
  if (!read_parts(variable, node, key, settings, problems)) return false;
  const std::string why = problems.concern("backend") ? "" : variable.refused_by(settings, backend);
  if (!why.empty()) problems.add(node.place, key, why);
  return why.empty();
}

// Returns false and adds a problem if the workload or the backend of the experiment ignores this variable. A baseline
// with a model may set variables of the training step, because they determine the sizes that `from_model` finds. An
// invalid workload or backend is no problem of the variable.
bool honoured(const Variable& variable, const YamlNode& node, const std::string& key, const Experiment& experiment,
              bool swept, Problems& problems) {
  const BackendKind backend = experiment.backend;
  const std::string& workload = experiment.baseline.workload;
  const bool of_training = variable.honoured_by(training_workload);
  const bool describes_model = !swept && of_training && experiment.model.layers > 0;
  if (!variable.honoured_by(workload) && !describes_model && !problems.concern("workload")) {
    const char* remedy =
        !swept && of_training ? "; with a `model`, it may be set here to describe that model's step" : "";
    problems.add(node.key_place, key,
                 fmt::format("workload {} does not honour it; workloads that do: {}{}", workload,
                             join(variable.workloads, ", "), remedy));
    return false;
  }
  if (problems.concern("backend")) return true;
  if (variable.honoured_on(name_of(backend), name_of(stands_for(experiment)))) return true;
  const auto name = [](BackendKind kind) { return name_of(kind); };
  problems.add(node.key_place, key,
               fmt::format("backend {} does not honour it; backends that do: {}", name_of(backend),
                           join(texts_of_all(variable.backends, name), ", ")));
  return false;
}

// Expands "8 B..8 GiB x2" to 8 B, 16 B and so on, up to 8 GiB; the default factor is 2. Throws Error.
std::vector<std::string> sizes_of_range(std::string_view text) {
  constexpr std::string_view example = "expected a range of sizes such as 8 B..8 GiB x2";
  constexpr std::int64_t usual_factor = 2, max_factor = 1024;
  const std::size_t dots = text.find(range_dots);
  const std::string_view low_text = trim(text.substr(0, dots)), rest = trim(text.substr(dots + range_dots.size()));
  const std::size_t times = rest.rfind('x');
  const bool has_factor = times != std::string_view::npos;
  const std::int64_t factor =
      has_factor ? parse_within(trim(rest.substr(times + 1)), usual_factor, max_factor) : usual_factor;
  const std::int64_t low = parse_bytes(low_text), high = parse_bytes(trim(rest.substr(0, times)));
  if (low < 1) fail("found {}, which begins below 1 B; {}", quote(text), example);
  if (high <= low) fail("found {}, whose end is not above its beginning; {}", quote(text), example);
  std::vector<std::string> sizes{print_bytes_exact(low)};
  for (std::int64_t size = low; size <= high / factor; sizes.push_back(print_bytes_exact(size))) size *= factor;
  return sizes;
}

// Returns the values of a list item: itself, or the sizes of a range.
std::vector<YamlNode> values_of(const Variable& variable, const YamlNode& item, const std::string& key,
                                Problems& problems) {
  const bool range =
      variable.has_ranges && item.kind == YamlNode::Kind::scalar && item.scalar.find(range_dots) != std::string::npos;
  if (!range) return {item};
  std::vector<YamlNode> values;
  parse_or_report(problems, item.place, key, item.scalar, [&](std::string_view text) {
    for (std::string& size : sizes_of_range(text)) {
      values.push_back(item);
      values.back().scalar = std::move(size);
    }
  });
  return values;
}

void read_changes(const Variable& variable, const YamlNode& node, const std::string& key, bool baseline_known,
                  Experiment& experiment, Problems& problems) {
  if (variable.purpose == Purpose::size && node.kind == YamlNode::Kind::scalar && node.scalar == "from_model") {
    if (experiment.model.layers == 0)
      return problems.add(node.place, key, "from_model takes its values from a model's training step; add a `model`");
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
  if (node.children.empty())
    return problems.add(node.place, key,
                        fmt::format("found an empty list; name the values to try: {}", variable.allowed));
  std::vector<std::string> tried;
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    const std::string path = fmt::format("{}[{}]", key, i);
    for (const YamlNode& item : values_of(variable, node.children[i], path, problems)) {
      Settings settings = experiment.baseline;
      if (!read_value(variable, item, path, experiment.backend, settings, problems)) continue;
      const std::string value = variable.print(settings);
      // A list may repeat the value of the baseline, such as [1, 2, 4] for 2: the baseline already measures it.
      const bool as_the_baseline = baseline_known && value == variable.print(experiment.baseline);
      if (std::ranges::find(tried, value) != tried.end()) {
        problems.add(item.place, path, fmt::format("{} is in the list twice; keep one", value));
      } else if (!as_the_baseline) {
        experiment.changes.push_back({variable.name, value, std::move(settings), ""});
      }
      tried.push_back(value);
    }
  }
}

using ReadVariable = std::function<void(const Variable& variable, const YamlNode& value, const std::string& path)>;

// Returns the fields of a map whose keys are variables.
std::vector<Field> per_variable(const ReadVariable& read) {
  std::vector<Field> fields;
  for (const Variable& variable : registry()) {
    if (variable.fixed) continue;
    fields.push_back(
        Field::other(variable.name, Takes::value,
                     [&, read](const YamlNode& value, const std::string& path) { read(variable, value, path); }));
  }
  return fields;
}

// Reads a map with one value per variable into `settings`. Returns the changes, "micro_batch_size=4" …, or nullopt if
// there is a problem.
std::optional<std::vector<std::string>> read_joint(const YamlNode& node, const std::string& key,
                                                   const Experiment& experiment, Settings& settings,
                                                   Problems& problems) {
  std::vector<std::string> parts;
  const auto read = [&](const Variable& variable, const YamlNode& value, const std::string& path) {
    if (!honoured(variable, value, path, experiment, true, problems)) return;
    if (variable.purpose == Purpose::size)
      return problems.add(
          value.place, path,
          "every setting is measured at every size that `sweep` lists; move this size to sweep." + variable.name);
    if (!read_value(variable, value, path, experiment.backend, settings, problems)) return;
    if (variable.print(settings) == variable.print(experiment.baseline))
      return problems.add(value.place, path, "this is the baseline's value; leave it out");
    parts.push_back(fmt::format("{}={}", variable.name, variable.print(settings)));
  };
  if (!read_map(problems, node, key, per_variable(read)) || parts.size() < node.children.size()) return std::nullopt;
  return parts;
}

// Reports a value that another variable in the same scope overrides, unless a later --set sets that one.
void refuse_overridden(const YamlNode& scope, const std::string& key, const Settings& settings, Problems& problems) {
  for (const Variable& variable : registry()) {
    const YamlNode* given = scope.find(variable.name);
    const YamlNode* other = variable.overridden_by.empty() ? nullptr : scope.find(variable.overridden_by);
    if (given == nullptr || other == nullptr || other->place.source > given->place.source) continue;
    const Variable& decides = *find_variable(variable.overridden_by);
    const std::string value = decides.print(settings);
    if (value == decides.print(Settings())) continue;
    problems.add(given->key_place, key + "." + variable.name,
                 fmt::format("{} {} decides it; leave one of the two out", decides.name, value));
  }
}

void read_combination(const YamlNode& node, const std::string& key, Experiment& experiment, Problems& problems) {
  Change change{std::string(combination), "", experiment.baseline};
  const auto parts = read_joint(node, key, experiment, change.settings, problems);
  if (!parts) return;
  refuse_overridden(node, key, change.settings, problems);
  if (parts->size() < 2)
    return problems.add(node.place, key,
                        "a combination changes two variables or more; a single one belongs under sweep");
  change.value = join(*parts, " + ");
  const auto is_this = [&](const Change& c) { return c.variable == combination && c.value == change.value; };
  if (std::ranges::any_of(experiment.changes, is_this))
    return problems.add(node.place, key, fmt::format("{} is in the list twice; keep one", change.value));
  experiment.changes.push_back(std::move(change));
}

void read_combinations(const YamlNode& node, Experiment& experiment, Problems& problems) {
  if (node.kind != YamlNode::Kind::sequence || node.children.empty())
    return problems.add(
        node.place, "combine",
        fmt::format("found {}; expected a list of maps, such as [{{micro_batch_size: 4, precision: bf16}}]",
                    describe(node)));
  for (std::size_t i = 0; i < node.children.size(); ++i)
    read_combination(node.children[i], fmt::format("combine[{}]", i), experiment, problems);
}

// Checks the name of a fix, which becomes the name of a case, alone or joined by " + ".
std::string what_is_wrong(const std::string& name, const std::vector<std::string>& fixes) {
  if (name.empty() || name.size() > 60) return "a fix needs a name of 1 to 60 characters";
  if (name.find_first_of("=+,;\n\t") != std::string::npos) return "the name of a fix cannot have = + , or ; in it";
  if (std::ranges::find(fixes, name) != fixes.end()) return "there is a fix of this name above; name them differently";
  if (name == "baseline" || name == "baseline_again") return "this is the name of a case that every sweep has";
  return "";
}

// Reads one fix: `name: {variable: value, …}`. `before`: the settings with all earlier fixes; gets this one added.
// `fixes`: their names, likewise.
void read_fix(const YamlNode& node, const std::string& key, Settings& before, std::vector<std::string>& fixes,
              Experiment& experiment, Problems& problems) {
  Change alone{std::string(combination), node.key, experiment.baseline};
  const std::string wrong = what_is_wrong(node.key, fixes);
  if (!wrong.empty()) return problems.add(node.key_place, key, wrong);
  if (!read_joint(node, key, experiment, alone.settings, problems)) return;
  refuse_overridden(node, key, alone.settings, problems);
  Change together{std::string(combination), "", before};
  if (!read_joint(node, key, experiment, together.settings, problems)) return;
  const auto differs = [&](const Variable& v) { return v.print(together.settings) != v.print(before); };
  if (std::ranges::none_of(registry(), differs))
    return problems.add(node.place, key, "it changes nothing on top of the fixes before it; leave it out");
  before = together.settings;
  experiment.changes.push_back(std::move(alone));
  fixes.push_back(node.key);
  if (fixes.size() == 1) return;
  together.value = join(fixes, " + ");
  experiment.changes.push_back(std::move(together));
}

void read_ladder(const YamlNode& node, Experiment& experiment, Problems& problems) {
  const auto refuse = [&](const YamlNode& at) {
    problems.add(at.place, "ladder",
                 fmt::format("found {}; expected a list of named fixes, such as [{{larger batches: {{micro_batch_size: "
                             "4}}}}, {{overlap: {{overlap_grad_reduce: true}}}}]",
                             describe(at)));
  };
  if (node.kind != YamlNode::Kind::sequence || node.children.empty()) return refuse(node);
  Settings before = experiment.baseline;
  std::vector<std::string> fixes;
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    const YamlNode& child = node.children[i];
    if (child.kind != YamlNode::Kind::map || child.children.size() != 1) return refuse(child);
    read_fix(child.children[0], fmt::format("ladder[{}].{}", i, child.children[0].key), before, fixes, experiment,
             problems);
  }
  if (node.children.size() < 2) {
    problems.add(node.place, "ladder", "a ladder has two fixes or more; a single one belongs under sweep or combine");
  }
}

void read_sweep(const YamlNode& sweep, const std::set<std::string>& unknown, Experiment& experiment,
                Problems& problems) {
  if (sweep.kind == YamlNode::Kind::map && sweep.children.empty())
    return problems.add(sweep.place, "sweep",
                        "found an empty map; name what to change, such as {micro_batch_size: [2, 4]}");
  const auto read = [&](const Variable& variable, const YamlNode& value, const std::string& key) {
    if (!honoured(variable, value, key, experiment, true, problems)) return;
    read_changes(variable, value, key, !unknown.contains(variable.name), experiment, problems);
  };
  read_map(problems, sweep, "sweep", per_variable(read));
  // Orders cases as in the file, not as in the registry.
  if (sweep.kind != YamlNode::Kind::map) return;
  const auto position = [&](const Change& change) { return sweep.find(change.variable) - sweep.children.data(); };
  std::stable_sort(experiment.changes.begin(), experiment.changes.end(),
                   [&](const Change& a, const Change& b) { return position(a) < position(b); });
}

}  // namespace

void read_variables(const YamlNode& root, Experiment& experiment, Problems& problems) {
  std::set<std::string> unknown;  // variables whose baseline could not be read
  const auto read = [&](const Variable& variable, const YamlNode& value, const std::string& key) {
    const bool good = honoured(variable, value, key, experiment, false, problems) &&
                      read_value(variable, value, key, experiment.backend, experiment.baseline, problems);
    if (!good) unknown.insert(variable.name);
  };
  if (const YamlNode* baseline = root.find("baseline")) {
    read_map(problems, *baseline, "baseline", per_variable(read));
    refuse_overridden(*baseline, "baseline", experiment.baseline, problems);
  }
  if (const YamlNode* sweep = root.find("sweep")) read_sweep(*sweep, unknown, experiment, problems);
  if (const YamlNode* combine = root.find("combine")) read_combinations(*combine, experiment, problems);
  if (const YamlNode* ladder = root.find("ladder")) read_ladder(*ladder, experiment, problems);
}

}  // namespace harness::config
