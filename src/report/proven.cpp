#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/cases.h"
#include "base/text.h"
#include "config/backend.h"
#include "config/experiment.h"
#include "config/files.h"
#include "config/registry.h"
#include "report/document.h"
#include "report/export.h"
#include "report/words.h"

namespace harness::report {
namespace {

using config::YamlNode;

std::string proven_change(const analysis::Effect& effect) {
  if (!std::isfinite(effect.ratio)) return "no ratio";
  const std::string interval = interval_words(effect.low, effect.high);
  return fmt::format("time {}{}{}", change_words(effect.ratio), interval.empty() ? "" : " ", interval);
}

// The evidence for a faster case, on one line: "NAME: time -4.0 % [-4.1 %, -3.9 %], 12 rounds; FILE, harness 0.1.0".
std::string evidence_for(const store::Result& result, const analysis::CaseSummary& row, const std::string& name,
                         const std::string& file) {
  const std::string program = value_of(result.identity, "harness");  // version and commit, as far as the file says
  return one_line(fmt::format("{}: {}, {}; {}, harness {}", name, proven_change(*row.effect),
                              plural(row.effect->rounds, "round"), file,
                              program.empty() ? result.tool_version : program));
}

// The verdict of the sweep on a case: "unresolved, time -1.6 % [-13.1 %, +11.4 %] in 12 rounds", "failed", "not
// measured".
std::string outcome_words(const analysis::CaseSummary& row) {
  if (!store::may_run(row.status)) return store::name_of(row.status);
  if (store::is_reference(row.role)) return "the baseline";
  if (!row.effect || row.effect->verdict == analysis::Verdict::none) return analysis::name_of(row.judgement);
  return fmt::format("{}, {} in {}", analysis::name_of(row.effect->verdict), proven_change(*row.effect),
                     plural(row.effect->rounds, "round"));
}

// Parses the value as a configuration would, so that every exported value is one that harness accepts.
ExportedSetting read_back(const store::Result& result, const analysis::CaseSummary& row, const std::string& file) {
  const store::ResultCase& of = result.at(row);
  if (of.variable == config::combination)
    fail("several changes together; export its variables from cases of their own");
  const config::Variable* variable = config::find_variable(of.variable);
  if (variable == nullptr) fail("this version of harness knows no variable {}", quote(of.variable));
  config::Settings alone;
  variable->parse(alone, of.value);
  ExportedSetting proven;
  proven.variable = variable->name;
  proven.value = variable->print(alone);
  // With the other settings of the case: some keys depend on them.
  proven.settings = analysis::settings_of(result, of);
  variable->parse(proven.settings, of.value);
  if (!variable->environment_name.empty() && proven.value != "default")
    proven.environment.emplace_back(variable->environment_name, variable->environment_text(proven.value));
  for (const auto& [name, value] : alone.env) {
    config::check_env_entry(name, value);
    proven.environment.emplace_back(name, value);
  }
  const std::string name = fmt::format("{}={}", proven.variable, proven.value);
  proven.evidence = evidence_for(result, row, analysis::is_grid(result) ? row.name : name, file);
  proven.ratio = row.effect->ratio;
  return proven;
}

// Another size at which this setting is proven slower; nullptr if there is none.
const analysis::CaseSummary* slower_elsewhere(const store::Result& result, const analysis::Summary& summary,
                                              const analysis::CaseSummary& row) {
  const auto found = std::ranges::find_if(summary.cases, [&](const analysis::CaseSummary& other) {
    return other.role == store::CaseRole::change && result.at(other).variable == result.at(row).variable &&
           result.at(other).value == result.at(row).value && other.judgement.verdict == analysis::Verdict::slower;
  });
  return found == summary.cases.end() ? nullptr : &*found;
}

// "laptop, 2026-01-02T03:04:05Z, 4 ranks, 4 layers, hidden 128"; single operations have no model.
std::string measured_what(const store::Result& result) {
  std::string words = fmt::format("{}, {}, {}", result.name, result.created, plural(result.ranks, "rank"));
  if (result.points.empty())
    words += fmt::format(", {}, hidden {}", plural(result.model.layers, "layer"), result.model.hidden);
  return words;
}

std::vector<std::string> about_proven(const store::Result& result, std::size_t settings, const std::string& file) {
  if (config::traits_of(result.backend).predicts())
    return {fmt::format(
        "Predicted, not measured: {} proves nothing, so there is nothing to set. Measure what it predicts.", file)};
  std::vector<std::string> lines{
      fmt::format("What {} proves faster than its baseline ({}).", file, measured_what(result))};
  if (!result.ranks_are_gpus())
    lines.push_back(fmt::format("Measured on backend {}: this says nothing about a GPU.", result.backend));
  if (settings == 0) lines.emplace_back("Nothing is proven faster: there is nothing to set.");
  if (settings > 1) {
    lines.emplace_back(
        "Each was proven alone against the baseline. Together they are not proven: run a sweep with all of them as the "
        "baseline.");
  }
  return lines;
}

std::int32_t proven_case(const store::Result& result, const analysis::Summary& summary, const std::string& name) {
  const std::int32_t index = find_case(result, name);
  const analysis::CaseSummary& row = summary.case_at(index);
  if (row.role != store::CaseRole::change)
    fail("{} is the baseline: it changes nothing that could be exported", quote(name));
  if (!analysis::is_proven(row))
    fail("{} is not proven faster ({}): only what is proven is exported", quote(name), outcome_words(row));
  return index;
}

// The changes that the next baseline adopts: variables and values in canonical form; empty if nothing is proven.
struct Adopted {
  std::map<std::string, std::string> values = {};
  std::string name = {}, evidence = {};
  double ratio = 1;
};

bool is_setting(const std::string& variable) {
  return config::find_variable(variable) != nullptr && config::purpose_of(variable) == config::Purpose::setting;
}

std::string name_of(const ExportedSetting& one) {
  return fmt::format("{}={}", one.variable, one.value);
}

// The fastest proven change or combination; a combination with every variable in which it differs from the baseline.
Adopted fastest_of(const store::Result& result, const analysis::Summary& summary, const Export& proven,
                   const std::string& file) {
  Adopted fastest;
  const auto consider = [&](const Adopted& other) {
    const bool settings = std::ranges::all_of(other.values, [](const auto& value) { return is_setting(value.first); });
    if (other.ratio < fastest.ratio && !other.values.empty() && settings) fastest = other;
  };
  for (const ExportedSetting& one : proven.settings)
    consider({{{one.variable, one.value}}, name_of(one), one.evidence, one.ratio});
  for (const analysis::CaseSummary& row : summary.cases) {
    const bool is_combination = result.at(row).variable == config::combination;
    if (!is_combination || !proven.is_asked_for(row) || !analysis::is_proven(row) || row.another_training) continue;
    Adopted combined{{}, row.name, evidence_for(result, row, row.name, file), row.effect->ratio};
    for (const std::string& variable : result.variables) {
      const std::string_view value = result.setting(result.at(row), variable);
      if (result.baseline() != nullptr && value != result.setting(*result.baseline(), variable))
        combined.values[variable] = value;
    }
    consider(combined);
  }
  return fastest;
}

// Edits the configuration of a result, with a remark on each edit.
class NextSweep {
 public:
  NextSweep(const store::Result& result, const analysis::Summary& summary, Adopted adopted)
      : summary_(summary), adopted_(std::move(adopted)) {
    const int source = problems_.add_file(result.config_path.empty() ? "the configuration" : result.config_path);
    if (auto parsed = config::parse_yaml(result.config_text, source, problems_)) root_ = std::move(*parsed);
    if (root_.kind == YamlNode::Kind::map) set(result.overrides);
    problems_.throw_if_any();
    if (root_.kind != YamlNode::Kind::map) fail("the file holds no configuration, so there is none to go on from");
    if (result.baseline() != nullptr) before_ = analysis::settings_of(result, *result.baseline());
    if (has_another_baseline()) edit_baseline();
    YamlNode* sweep = root_.find("sweep");
    if (sweep != nullptr) std::erase_if(sweep->children, [&](YamlNode& list) { return thin_out(list); });
  }

  bool has_another_baseline() const { return !adopted_.values.empty(); }

  // Each was proven against the former baseline alone, so it is unknown whether the gains add up.
  void add_the_others(const std::vector<ExportedSetting>& proven) {
    std::vector<std::string> others;
    for (const ExportedSetting& one : proven) {
      if (!is_setting(one.variable) || adopted_.values.contains(one.variable)) continue;
      remarks.push_back(fmt::format("{} was proven against the former baseline, not yet together with {}", name_of(one),
                                    adopted_.name));
      others.push_back(fmt::format("{}: {}", config::yaml_word(one.variable), config::yaml_value(one.value)));
    }
    if (others.size() > 1) set({"combine=[{" + join(others, ", ") + "}]"});  // a single one is already in its list
  }

  std::string yaml() const {
    std::string out;
    bool anything_left = false;
    for (const YamlNode& section : root_.children) {
      const bool tried = section.key == "sweep" || section.key == "combine" || section.key == "ladder";
      if (tried && section.children.empty()) continue;
      anything_left = anything_left || tried;
      if (section.children.empty() || section.key == "model") {
        out += fmt::format("{}: {}\n", config::yaml_word(section.key), config::flow(section));
        continue;
      }
      out += config::yaml_word(section.key) + ":\n";
      for (const YamlNode& child : section.children)
        out += (child.key.empty() ? "  - " : "  " + config::yaml_word(child.key) + ": ") + config::flow(child) + "\n";
    }
    return anything_left ? out : "# Nothing is left to try: add values under `sweep`.\n" + out;
  }

  std::vector<std::string> remarks;

 private:
  void set(const std::vector<std::string>& overrides) {
    config::apply_overrides(root_, overrides, problems_);
    problems_.throw_if_any();
  }

  void edit_baseline() {
    remarks.push_back("The baseline takes the fastest proven change, " + adopted_.evidence);
    if (YamlNode* baseline = root_.find("baseline")) {
      std::erase_if(baseline->children, [&](const YamlNode& child) {
        const config::Variable* variable = config::find_variable(child.key);
        return variable != nullptr && adopted_.values.contains(variable->overridden_by);
      });
    }
    for (const auto& [name, value] : adopted_.values) {
      YamlNode* baseline = root_.find("baseline");
      YamlNode* former = baseline == nullptr ? nullptr : baseline->find(name);
      if (former != nullptr) former->children.clear();  // an override keeps the parts that its map does not name
      set({fmt::format("baseline.{}={}", name, config::yaml_value(value))});
    }
    for (const char* former : {"combine", "ladder"}) {
      if (std::erase_if(root_.children, [&](const YamlNode& node) { return node.key == former; }) > 0)
        remarks.push_back(fmt::format("{}: left out, because it belongs to the former baseline", former));
    }
  }

  // Removes the values that the next sweep need not try. Returns whether the list is empty.
  bool thin_out(YamlNode& list) {
    if (list.kind != YamlNode::Kind::sequence) return false;  // `from_model`
    std::erase_if(list.children, [&](const YamlNode& item) { return leaves(list.key, canonical(list.key, item)); });
    return list.children.empty();
  }

  bool leaves(const std::string& variable, const std::string& value) {
    const std::string name = fmt::format("{}={}", variable, value);
    const config::Variable* known = config::find_variable(variable);
    const std::string before = known == nullptr ? "" : known->print(before_);
    const auto taken = adopted_.values.find(variable);
    if (value == (taken == adopted_.values.end() ? before : taken->second)) return true;  // the baseline measures it
    if (value == before) {
      remarks.push_back(
          fmt::format("left out: {}: the baseline's until now, proven slower than {}", name, adopted_.name));
      return true;
    }
    const auto tries_it = [&](const analysis::CaseSummary& row) {  // at whatever size of an operation
      return row.name == name || row.name.starts_with(name + " at ");
    };
    const auto row = std::ranges::find_if(summary_.cases, tries_it);
    const auto is_open = [&](const analysis::CaseSummary& other) {
      return tries_it(other) && !is_settled_badly(other);
    };
    if (row == summary_.cases.end() || std::ranges::any_of(summary_.cases, is_open)) return false;
    remarks.push_back(fmt::format("left out: {}: {}", name, outcome_words(*row)));
    return true;
  }

  // Proven slower, or certain to have the same outcome if repeated. Where the baseline failed, what failed a case may
  // have been nothing of its own.
  bool is_settled_badly(const analysis::CaseSummary& row) const {
    using enum analysis::Verdict;
    const analysis::CaseSummary* baseline = summary_.baseline();
    const bool baseline_failed = baseline != nullptr && baseline->status == store::CaseStatus::failed;
    return (row.status == store::CaseStatus::failed && !baseline_failed) ||
           row.status == store::CaseStatus::impossible || analysis::timed_something_else(row.judgement) ||
           row.judgement.verdict == slower || row.judgement.verdict == not_honoured;
  }

  std::string canonical(const std::string& name, const YamlNode& node) const {
    const config::Variable* variable = config::find_variable(name);
    if (variable == nullptr) return config::value_text(node);
    try {
      config::Settings settings = before_;
      variable->parse(settings, config::value_text(node));
      return variable->print(settings);
    } catch (const Error&) {
      return config::value_text(node);
    }
  }

  const analysis::Summary& summary_;
  config::Problems problems_;
  YamlNode root_;
  config::Settings before_;
  const Adopted adopted_;
};

}  // namespace

Export find_proven(const store::Result& result, const analysis::Summary& summary, const std::string& case_name,
                   const std::string& file) {
  if (summary.unreliable) {
    throw Error(fmt::format("{} proves nothing: its control, baseline_again, is {} than the baseline that it "
                            "repeats. Measure again when the machine is quiet.",
                            quote(file), analysis::name_of(summary.control->verdict)),
                4);
  }
  Export out;
  if (!case_name.empty()) out.only = proven_case(result, summary, case_name);
  const auto leave_out = [&](const std::string& name, const std::string& why) {
    out.left_out.push_back(fmt::format("{}: {}", name, why));
  };
  std::vector<const analysis::CaseSummary*> proven;
  for (const analysis::CaseSummary& row : summary.cases) {
    if (row.role != store::CaseRole::change || !out.is_asked_for(row)) continue;
    if (!analysis::is_proven(row)) {
      leave_out(row.name, outcome_words(row));
    } else if (row.another_training && !out.only) {
      leave_out(row.name, fmt::format("another training ({})", outcome_words(row)));
    } else {
      proven.push_back(&row);
    }
  }
  std::ranges::stable_sort(proven, {}, [](const analysis::CaseSummary* row) { return row->effect->ratio; });
  for (const analysis::CaseSummary* row : proven) {
    const std::string change = proven_change(*row->effect);
    const analysis::CaseSummary* slower = slower_elsewhere(result, summary, *row);
    if (slower != nullptr && !out.only) {
      leave_out(row->name, fmt::format("proven here ({}), but {} is {}", change, slower->name, outcome_words(*slower)));
      continue;
    }
    try {
      ExportedSetting setting = read_back(result, *row, file);
      const auto taken = std::ranges::find(out.settings, setting.variable, &ExportedSetting::variable);
      if (taken == out.settings.end()) {
        out.settings.push_back(std::move(setting));
      } else if (taken->value != setting.value) {  // else it is exported, as proven at another size
        leave_out(row->name, fmt::format("proven too ({}), but {} is faster", change, taken->value));
      }
    } catch (const Error& error) {
      leave_out(quote(row->name), fmt::format("proven, but its value cannot be read: {}", error.what()));
    }
  }
  // By the place of the variable in the registry.
  std::ranges::stable_sort(out.settings, {}, [](const auto& one) { return config::find_variable(one.variable); });
  out.about = about_proven(result, out.settings.size(), file);
  if (result.points.empty()) out.model = result.model;
  return out;
}

Export planned_case(const store::Result& result, const analysis::Summary& summary, const std::string& case_name,
                    const std::string& file) {
  const std::int32_t index = find_case(result, case_name);
  const store::ResultCase& row = result.case_at(index);
  config::Settings settings;
  std::vector<std::string> unknown;
  for (std::size_t v = 0; v < result.variables.size(); ++v) {
    const config::Variable* variable = config::find_variable(result.variables[v]);
    if (variable == nullptr) {
      unknown.push_back(fmt::format("{}={}", result.variables[v], row.settings[v]));
    } else if (!variable->fixed) {
      variable->parse(settings, row.settings[v]);
    }
  }
  for (const auto& [name, value] : settings.env) config::check_env_entry(name, value);
  std::vector<std::string> about{fmt::format("All settings of {} in {} ({}): {}.", row.name, file,
                                             measured_what(result), outcome_words(summary.case_at(index)))};
  if (!unknown.empty())
    about.push_back(fmt::format("Without what this version of harness does not know: {}.", join(unknown, ", ")));
  if (config::traits_of(result.backend).predicts()) about.emplace_back("Predicted, not measured.");
  return all_settings(settings, result.backend, result.step_backend(),
                      result.points.empty() ? std::optional(result.model) : std::nullopt, std::move(about));
}

std::string next_configuration(const store::Result& result, const analysis::Summary& summary, const Export& proven,
                               const std::string& file) {
  NextSweep next(result, summary, fastest_of(result, summary, proven, file));
  if (!proven.only) next.add_the_others(proven.settings);
  std::string out;
  const auto comment = [&](const std::string& text) {
    for (const std::string& line : split_text(wrapped(one_line(text), 116, 2), "\n")) out += "# " + line + "\n";
  };
  comment(fmt::format("The next configuration after {}: sweep {} of {}, run {}, {}.", file, result.name, result.created,
                      result.run_uuid, plural(result.ranks, "rank")));
  if (summary.partial) comment("That sweep is not complete: more rounds may settle what is unresolved here.");
  if (!result.ranks_are_gpus())
    comment(fmt::format("Measured on backend {}: this says nothing about a GPU.", result.backend));
  if (!next.has_another_baseline())
    comment(fmt::format(
        "{}: the baseline stays as it was. Only what is settled has left the lists.",
        config::traits_of(result.backend).predicts() ? "Predicted, not measured" : "Nothing is proven faster"));
  for (const std::string& remark : next.remarks) comment(remark);
  return out + next.yaml();
}

}  // namespace harness::report
