#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <sstream>

#include "analysis/cases.h"
#include "base/error.h"
#include "base/text.h"
#include "config/environment.h"
#include "config/experiment.h"
#include "config/registry.h"
#include "config/yaml_tree.h"
#include "report/document.h"
#include "report/export.h"
#include "report/words.h"

namespace harness::report {
namespace {

std::string proven_change(const analysis::Effect& effect) {
  if (!std::isfinite(effect.ratio)) return "no ratio";
  const std::string interval = interval_words(effect.low, effect.high);
  return fmt::format("time {}{}{}", change_words(effect.ratio), interval.empty() ? "" : " ", interval);
}

// Why a faster case may be believed, on one line. It has an effect.
std::string evidence_for(const store::Result& result, const analysis::CaseSummary& row, const std::string& name,
                         const std::string& file) {
  return one_line(fmt::format("{}: {}, {}; {}, harness {}", name, proven_change(*row.effect),
                              plural(row.effect->rounds, "round"), file, program_of(result)));
}

// Reads the value as a configuration would, so that nothing goes out that harness would not take in.
ProvenSetting read_back(const store::Result& result, const analysis::CaseSummary& row, const std::string& file) {
  const store::ResultCase& result_case = result.at(row);
  if (result_case.variable == config::combination)
    fail("several changes together; export its variables from cases of their own");
  const config::Variable* variable = config::find_variable(result_case.variable);
  if (variable == nullptr) fail("this version of harness knows no variable {}", quote(result_case.variable));
  ProvenSetting proven;
  variable->parse(proven.settings, result_case.value);
  proven.name = fmt::format("{}={}", variable->name, variable->print(proven.settings));
  proven.variable = variable->name;
  proven.value = variable->print(proven.settings);
  if (!variable->environment_name.empty() && proven.value != "default") {
    const auto& text = variable->environment_text;
    proven.environment.emplace_back(variable->environment_name, text ? text(proven.value) : proven.value);
  }
  for (const auto& [name, value] : proven.settings.env) {
    config::check_env_entry(name, value);
    proven.environment.emplace_back(name, value);
  }
  proven.evidence = evidence_for(result, row, analysis::is_grid(result) ? row.name : proven.name, file);
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

auto place_in_registry(const std::string& name) {
  const auto names = config::variable_names();
  return std::ranges::find(names, name) - names.begin();
}

using config::YamlNode;
/// Variables with a value each, in canonical form.
using Values = std::map<std::string, std::string>;

YamlNode configuration_of(const store::Result& result) {
  config::Problems problems;
  const int source = problems.add_file(result.config_path.empty() ? "the configuration" : result.config_path);
  std::optional<YamlNode> root = config::parse_yaml(result.config_text, source, problems);
  if (root && root->kind == YamlNode::Kind::map) config::apply_overrides(*root, result.overrides, problems);
  problems.throw_if_any();
  if (!root || root->kind != YamlNode::Kind::map)
    fail("the file holds no configuration, so there is none to go on from");
  return std::move(*root);
}

// Proven slower, or nothing that would come out otherwise a second time.
bool is_settled_badly(const analysis::CaseSummary& row) {
  if (row.status == store::CaseStatus::failed || row.status == store::CaseStatus::impossible) return true;
  if (analysis::timed_something_else(row.judgement)) return true;
  return row.judgement.verdict == analysis::Verdict::slower || row.judgement.verdict == analysis::Verdict::not_honoured;
}

bool is_setting(const std::string& variable) {
  return config::find_variable(variable) != nullptr && config::purpose_of(variable) == config::Purpose::setting;
}

// Edits the configuration of a result, with a remark on each edit.
class NextSweep {
 public:
  NextSweep(const store::Result& result, const analysis::Summary& summary, const Proven& proven,
            const std::string& file)
      : result_(result), summary_(summary), file_(one_line(file)), root_(configuration_of(result)) {
    if (result.baseline() != nullptr) old_ = analysis::settings_of(result, *result.baseline());
    choose_baseline(proven);
    if (YamlNode* baseline = root_.find("baseline")) edit_baseline(*baseline);
    if (YamlNode* sweep = root_.find("sweep")) edit_lists(*sweep);
    if (YamlNode* combine = root_.find("combine"))
      std::erase_if(combine->children, [&](const YamlNode& combination) { return leaves(combination); });
    if (!proven.only) add_the_others(proven);
    if (!adopted_.values.empty() &&
        std::erase_if(root_.children, [](const YamlNode& node) { return node.key == "ladder"; }))
      remarks_.emplace_back("ladder: left out, because its fixes belong to the former baseline");
  }

  std::string text() const {
    std::string out;
    const auto comment = [&](const std::string& text) {
      std::istringstream lines(wrapped(one_line(text), 116, 2));
      for (std::string line; std::getline(lines, line);) out += "# " + line + "\n";
    };
    comment(fmt::format("The next configuration after {}: sweep {} of {}, run {}, {}.", file_, result_.name,
                        result_.created, result_.run_uuid, plural(result_.ranks, "rank")));
    if (summary_.partial) comment("That sweep is not complete: more rounds may settle what is unresolved here.");
    if (!result_.ranks_are_gpus())
      comment(fmt::format("Measured on backend {}: this says nothing about a GPU.", one_line(result_.backend)));
    if (adopted_.values.empty())
      comment("Nothing is proven faster: the baseline stays as it was. Only what is settled has left the lists.");
    for (const std::string& remark : remarks_) comment(remark);
    bool anything_left = false;
    for (const YamlNode& section : root_.children) {
      const bool tried = section.key == "sweep" || section.key == "combine";
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

 private:
  // By the next baseline.
  struct Adopted {
    Values values = {};
    std::string name = {}, evidence = {};
    double ratio = 1;
  };

  // One proven change, or a proven combination: the fastest.
  void choose_baseline(const Proven& proven) {
    const auto consider = [&](const Adopted& other) {
      const bool settings =
          std::ranges::all_of(other.values, [](const auto& value) { return is_setting(value.first); });
      if (other.ratio < adopted_.ratio && !other.values.empty() && settings) adopted_ = other;
    };
    for (const ProvenSetting& one : proven.settings)
      consider({{{one.variable, one.value}}, one.name, one.evidence, one.ratio});
    for (const analysis::CaseSummary& row : summary_.cases) {
      if (proven.is_asked_for(row) && result_.at(row).variable == config::combination && analysis::is_improvement(row))
        consider({values_of(row), row.name, evidence_for(result_, row, row.name, file_), row.effect->ratio});
    }
  }

  void set(const std::vector<std::string>& overrides) {
    config::Problems problems;
    config::apply_overrides(root_, overrides, problems);
    problems.throw_if_any();
  }

  void edit_baseline(YamlNode& baseline) {
    if (adopted_.values.empty()) return;
    remarks_.push_back(fmt::format("The baseline takes the fastest proven change, {}", adopted_.evidence));
    std::erase_if(baseline.children, [&](const YamlNode& child) {
      const config::Variable* variable = config::find_variable(child.key);
      return variable != nullptr && adopted_.values.contains(variable->overridden_by);
    });
    std::vector<std::string> overrides;
    for (const auto& [name, value] : adopted_.values) {
      remarks_.push_back(fmt::format("baseline.{}: {} until now", name, value_before(name)));
      overrides.push_back(fmt::format("baseline.{}={}", name, config::yaml_value(value)));
    }
    set(overrides);
  }

  // Takes the values out of lists that the next sweep need not try, and lists that have none left.
  void edit_lists(YamlNode& sweep) {
    for (YamlNode& list : sweep.children) {
      if (list.kind == YamlNode::Kind::sequence)  // else `from_model`
        std::erase_if(list.children, [&](const YamlNode& item) { return leaves(list.key, canonical(list.key, item)); });
    }
    std::erase_if(sweep.children,
                  [](const YamlNode& list) { return list.kind == YamlNode::Kind::sequence && list.children.empty(); });
  }

  bool leaves(const std::string& variable, const std::string& value) {
    const std::string name = fmt::format("{}={}", variable, value);
    if (value == value_after(variable)) return true;  // the baseline measures it
    if (value != value_before(variable)) return is_settled(name, [&](const auto& row) { return row.name == name; });
    remarks_.push_back(
        fmt::format("left out: {}: the baseline's until now, proven slower than {}", name, adopted_.name));
    return true;
  }

  bool leaves(const YamlNode& combination) {
    Values values;
    for (const YamlNode& child : combination.children) values[child.key] = canonical(child.key, child);
    const std::string name = config::flow(combination);
    if (is_settled(name, [&](const auto& row) {
          return result_.at(row).variable == config::combination && values_of(row) == values;
        }))
      return true;
    std::erase_if(values, [&](const auto& value) { return value.second == value_after(value.first); });
    if (values.size() < 2)
      remarks_.push_back(fmt::format("left out: {}: the baseline has all but one of it, or all", name));
    return values.size() < 2;
  }

  // Each was proven against the former baseline alone: nobody knows whether the gains add up.
  void add_the_others(const Proven& proven) {
    std::vector<std::string> others;
    for (const ProvenSetting& one : proven.settings) {
      if (!is_setting(one.variable) || adopted_.values.contains(one.variable)) continue;
      remarks_.push_back(
          fmt::format("{} was proven against the former baseline, not yet together with {}", one.name, adopted_.name));
      others.push_back(fmt::format("{}: {}", config::yaml_word(one.variable), config::yaml_value(one.value)));
    }
    if (others.size() < 2) return;  // one is in its list
    std::vector<std::string> together{"{" + join(others, ", ") + "}"};
    if (const YamlNode* combine = root_.find("combine")) {
      for (const YamlNode& item : combine->children) together.push_back(config::flow(item));
    }
    set({"combine=[" + join(together, ", ") + "]"});
  }

  // Whether it need not be tried again; else what is known of it becomes a remark.
  bool is_settled(const std::string& name, const auto& is_row) {
    const auto row = std::ranges::find_if(summary_.cases, is_row);
    const bool known = row != summary_.cases.end(), settled = known && is_settled_badly(*row);
    remarks_.push_back(fmt::format("{}{}: {}", settled ? "left out: " : "", name,
                                   known ? outcome_of(*row) : "not measured in " + file_));
    return settled;
  }

  // Settings of a measured combination that differ from the baseline.
  Values values_of(const analysis::CaseSummary& row) const {
    Values values;
    for (const std::string& variable : result_.variables) {
      const std::string_view value = result_.setting(result_.at(row), variable);
      if (result_.baseline() != nullptr && value != result_.setting(*result_.baseline(), variable))
        values[variable] = value;
    }
    return values;
  }
  // The configuration's value, or that text where it cannot be read.
  std::string canonical(const std::string& name, const YamlNode& node) const {
    const config::Variable* variable = config::find_variable(name);
    if (variable == nullptr) return config::value_text(node);
    try {
      config::Settings settings = old_;
      variable->parse(settings, config::value_text(node));
      return variable->print(settings);
    } catch (const Error&) {
      return config::value_text(node);
    }
  }
  std::string value_before(const std::string& name) const {
    const config::Variable* variable = config::find_variable(name);
    return variable == nullptr ? "" : variable->print(old_);
  }
  std::string value_after(const std::string& name) const {
    const auto taken = adopted_.values.find(name);
    return taken == adopted_.values.end() ? value_before(name) : taken->second;
  }

  const store::Result& result_;
  const analysis::Summary& summary_;
  const std::string file_;
  YamlNode root_;
  config::Settings old_;
  Adopted adopted_;
  std::vector<std::string> remarks_;
};

}  // namespace

std::string outcome_of(const analysis::CaseSummary& row) {
  if (!store::may_run(row.status)) return store::name_of(row.status);
  if (store::is_reference(row.role)) return "the baseline";
  if (!row.effect || row.effect->verdict == analysis::Verdict::none) return analysis::name_of(row.judgement);
  return fmt::format("{}, {} in {}", analysis::name_of(row.effect->verdict), proven_change(*row.effect),
                     plural(row.effect->rounds, "round"));
}

Proven find_proven(const store::Result& result, const analysis::Summary& summary, const std::string& case_name,
                   const std::string& file) {
  if (summary.unreliable) {
    throw Error(fmt::format("{} proves nothing: its control, baseline_again, is {} than the baseline that it "
                            "repeats. Measure again when the machine is quiet.",
                            quote(file), analysis::name_of(summary.control->verdict)),
                4);
  }
  Proven out;
  if (!case_name.empty()) {
    out.only = find_case(result, case_name);
    const analysis::CaseSummary& row = summary.case_at(*out.only);
    if (row.role != store::CaseRole::change)
      fail("{} is the baseline: it changes nothing that could be exported", quote(case_name));
    if (!analysis::is_proven(row)) {
      fail("{} is not proven faster ({}): only what is proven is exported", quote(case_name), outcome_of(row));
    }
  }
  const auto leave_out = [&](const std::string& name, const std::string& why) {
    out.left_out.push_back(one_line(fmt::format("{}: {}", name, why)));
  };
  std::vector<const analysis::CaseSummary*> proven = summary.proven_changes();
  for (const analysis::CaseSummary& row : summary.cases) {
    if (row.role != store::CaseRole::change || !out.is_asked_for(row)) continue;
    if (!analysis::is_proven(row)) {
      leave_out(row.name, outcome_of(row));
    } else if (row.another_training && out.only) {
      proven.push_back(&row);
    } else if (row.another_training) {
      leave_out(row.name, fmt::format("another training ({})", outcome_of(row)));
    }
  }
  for (const analysis::CaseSummary* row : proven) {
    if (!out.is_asked_for(*row)) continue;
    const std::string change = proven_change(*row->effect);
    const analysis::CaseSummary* slower = slower_elsewhere(result, summary, *row);
    if (slower != nullptr && !out.only) {
      leave_out(row->name, fmt::format("proven here ({}), but {} is {}", change, slower->name, outcome_of(*slower)));
      continue;
    }
    try {
      ProvenSetting setting = read_back(result, *row, file);
      const auto taken = std::ranges::find(out.settings, setting.variable, &ProvenSetting::variable);
      if (taken == out.settings.end()) {
        out.settings.push_back(std::move(setting));
      } else {
        leave_out(setting.name, fmt::format("proven too ({}), but {} is faster", change, taken->name));
      }
    } catch (const Error& error) {
      leave_out(quote(row->name), fmt::format("proven, but its value cannot be read: {}", error.what()));
    }
  }
  std::ranges::stable_sort(out.settings, {},
                           [](const ProvenSetting& setting) { return place_in_registry(setting.variable); });
  return out;
}

std::string next_configuration(const store::Result& result, const analysis::Summary& summary, const Proven& proven,
                               const std::string& file) {
  return NextSweep(result, summary, proven, file).text();
}

}  // namespace harness::report
