#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "analysis/cases.h"
#include "base/error.h"
#include "base/text.h"
#include "config/experiment.h"
#include "config/registry.h"
#include "config/yaml_tree.h"
#include "report/document.h"
#include "report/export.h"

namespace harness::report {
namespace {

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

std::string name_of(const ExportedSetting& one) {
  return fmt::format("{}={}", one.variable, one.value);
}

// The change that the next baseline takes.
struct Adopted {
  Values values = {};
  std::string name = {}, evidence = {};
  double ratio = 1;
};

// Settings of a measured combination that differ from the baseline.
Values values_of(const store::Result& result, const analysis::CaseSummary& row) {
  Values values;
  for (const std::string& variable : result.variables) {
    const std::string_view value = result.setting(result.at(row), variable);
    if (result.baseline() != nullptr && value != result.setting(*result.baseline(), variable)) values[variable] = value;
  }
  return values;
}

// One proven change, or a proven combination: the fastest. No values if there is none.
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
    if (proven.is_asked_for(row) && result.at(row).variable == config::combination && analysis::is_improvement(row))
      consider({values_of(result, row), row.name, evidence_for(result, row, row.name, file), row.effect->ratio});
  }
  return fastest;
}

// Edits the configuration of a result, with a remark on each edit.
class NextSweep {
 public:
  NextSweep(const store::Result& result, const analysis::Summary& summary, Adopted adopted)
      : summary_(summary), root_(configuration_of(result)), adopted_(std::move(adopted)) {
    if (result.baseline() != nullptr) before_ = analysis::settings_of(result, *result.baseline());
    if (has_another_baseline()) edit_baseline();
    YamlNode* sweep = root_.find("sweep");
    if (sweep != nullptr) std::erase_if(sweep->children, [&](YamlNode& list) { return thin_out(list); });
  }

  const std::vector<std::string>& remarks() const { return remarks_; }
  bool has_another_baseline() const { return !adopted_.values.empty(); }

  // Each was proven against the former baseline alone: nobody knows whether the gains add up.
  void add_the_others(const std::vector<ExportedSetting>& proven) {
    std::vector<std::string> others;
    for (const ExportedSetting& one : proven) {
      if (!is_setting(one.variable) || adopted_.values.contains(one.variable)) continue;
      remarks_.push_back(fmt::format("{} was proven against the former baseline, not yet together with {}",
                                     name_of(one), adopted_.name));
      others.push_back(fmt::format("{}: {}", config::yaml_word(one.variable), config::yaml_value(one.value)));
    }
    if (others.size() > 1) set({"combine=[{" + join(others, ", ") + "}]"});  // one is in its list
  }

  std::string yaml() const {
    std::string out;
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
  void set(const std::vector<std::string>& overrides) {
    config::Problems problems;
    config::apply_overrides(root_, overrides, problems);
    problems.throw_if_any();
  }

  void edit_baseline() {
    remarks_.push_back("The baseline takes the fastest proven change, " + adopted_.evidence);
    if (YamlNode* baseline = root_.find("baseline")) {
      std::erase_if(baseline->children, [&](const YamlNode& child) {
        const config::Variable* variable = config::find_variable(child.key);
        return variable != nullptr && adopted_.values.contains(variable->overridden_by);
      });
    }
    std::vector<std::string> overrides;
    for (const auto& [name, value] : adopted_.values)
      overrides.push_back(fmt::format("baseline.{}={}", name, config::yaml_value(value)));
    set(overrides);
    for (const char* former : {"combine", "ladder"}) {
      if (std::erase_if(root_.children, [&](const YamlNode& node) { return node.key == former; }) > 0)
        remarks_.push_back(fmt::format("{}: left out, because it belongs to the former baseline", former));
    }
  }

  // Takes the values out of a list that the next sweep need not try. Returns whether none is left.
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
      remarks_.push_back(
          fmt::format("left out: {}: the baseline's until now, proven slower than {}", name, adopted_.name));
      return true;
    }
    const auto row = std::ranges::find(summary_.cases, name, &analysis::CaseSummary::name);
    if (row == summary_.cases.end() || !is_settled_badly(*row)) return false;
    remarks_.push_back(fmt::format("left out: {}: {}", name, outcome_of(*row)));
    return true;
  }

  // The configuration's value, or that text where it cannot be read.
  std::string canonical(const std::string& name, const YamlNode& node) const {
    const config::Variable* variable = config::find_variable(name);
    try {
      config::Settings settings = before_;
      if (variable != nullptr) variable->parse(settings, config::value_text(node));
      return variable != nullptr ? variable->print(settings) : config::value_text(node);
    } catch (const Error&) {
      return config::value_text(node);
    }
  }

  const analysis::Summary& summary_;
  YamlNode root_;
  config::Settings before_;
  const Adopted adopted_;
  std::vector<std::string> remarks_;
};

}  // namespace

std::string next_configuration(const store::Result& result, const analysis::Summary& summary, const Export& proven,
                               const std::string& file) {
  NextSweep next(result, summary, fastest_of(result, summary, proven, file));
  if (!proven.only) next.add_the_others(proven.settings);
  std::string out;
  const auto comment = [&](const std::string& text) {
    std::istringstream lines(wrapped(one_line(text), 116, 2));
    for (std::string line; std::getline(lines, line);) out += "# " + line + "\n";
  };
  comment(fmt::format("The next configuration after {}: sweep {} of {}, run {}, {}.", file, result.name, result.created,
                      result.run_uuid, plural(result.ranks, "rank")));
  if (summary.partial) comment("That sweep is not complete: more rounds may settle what is unresolved here.");
  if (!result.ranks_are_gpus())
    comment(fmt::format("Measured on backend {}: this says nothing about a GPU.", result.backend));
  if (!next.has_another_baseline())
    comment("Nothing is proven faster: the baseline stays as it was. Only what is settled has left the lists.");
  for (const std::string& remark : next.remarks()) comment(remark);
  return out + next.yaml();
}

}  // namespace harness::report
