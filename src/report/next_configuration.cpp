#include "report/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>

#include "analysis/cases.h"
#include "base/error.h"
#include "base/text.h"
#include "config/experiment.h"
#include "config/problems.h"
#include "config/registry.h"
#include "config/yaml_tree.h"
#include "report/clean_text.h"

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

struct Winner {
  Values values;  // none: nothing won
  std::string name, evidence;
  double ratio = 1;
};

// A combination that was measured, and what it sets otherwise than the baseline.
struct Combination {
  const analysis::CaseSummary* row;
  Values values;
};

// One value to try next, with what is known of it.
struct Candidate {
  std::string value;  // canonical
  std::string remark;
};
struct SweepLine {
  std::string variable;
  std::string as_it_was;  // of what is no list: `from_model`
  std::vector<Candidate> kept;
  std::vector<std::string> left_out;
};

class NextSweep {
 public:
  NextSweep(const store::Result& result, const analysis::Summary& summary, const Proven& proven,
            const std::string& case_name, const std::string& file)
      : result_(result),
        summary_(summary),
        file_(one_line(file)),
        root_(configuration_of(result)),
        old_(result.baseline() == nullptr ? config::Settings{} : analysis::settings_of(result, *result.baseline())) {
    for (const ProvenSetting& setting : proven.settings) {
      if (config::purpose_of(setting.variable) != config::Purpose::setting) continue;
      singles_.push_back({{{setting.variable, setting.value}}, setting.name, setting.evidence, setting.ratio});
    }
    find_combinations();
    std::vector<Winner> all = singles_;
    for (const auto& [row, values] : measured_) {
      if (analysis::is_improvement(*row) && (case_name.empty() || row->name == case_name) && sets_settings(values))
        all.push_back({values, row->name, evidence_for(result_, *row, row->name, file_), row->effect->ratio});
    }
    const auto best = std::ranges::min_element(all, {}, &Winner::ratio);
    if (best != all.end()) best_ = *best;
    read_sweep();
    read_combinations();
    if (case_name.empty()) add_the_joint_case();
  }

  std::string text() const {
    std::string out = head();
    for (const YamlNode& section : root_.children) {
      if (section.key == "sweep" || section.key == "combine") continue;
      if (section.key == "ladder" && found()) {  // its fixes are changes of the former baseline
        out += "# ladder: left out, because its fixes belong to the former baseline\n";
        continue;
      }
      if (section.key == "baseline") {
        out += baseline_text(section) + sweep_text() + combine_text();
      } else if (section.key == "measure" && section.kind == YamlNode::Kind::map) {
        out += "measure:\n";
        for (const YamlNode& child : section.children)
          out += fmt::format("  {}: {}\n", config::yaml_word(child.key), config::flow(child));
      } else {
        out += fmt::format("{}: {}\n", config::yaml_word(section.key), config::flow(section));
      }
    }
    return out;
  }

 private:
  std::string canonical(const std::string& variable_name, const std::string& text) const {
    const config::Variable* variable = config::find_variable(variable_name);
    if (variable == nullptr) fail("this version of harness knows no variable {}", quote(variable_name));
    config::Settings settings = old_;
    variable->parse(settings, text);
    return variable->print(settings);
  }
  // What stands in the configuration, or that text where it cannot be read.
  std::string canonical_or_as_is(const std::string& variable, const YamlNode& node) const {
    try {
      return canonical(variable, config::value_text(node));
    } catch (const Error&) {
      return config::value_text(node);
    }
  }
  std::string old_value(const std::string& variable_name) const {
    const config::Variable* variable = config::find_variable(variable_name);
    return variable == nullptr ? "" : variable->print(old_);
  }
  // What the next baseline sets the variable to.
  std::string new_value(const std::string& variable) const {
    return taken(variable) ? best_.values.at(variable) : old_value(variable);
  }
  bool taken(const std::string& variable) const { return best_.values.contains(variable); }
  // By a variable that the new baseline sets, and that decides instead of this one.
  bool superseded(const std::string& name) const {
    const config::Variable* variable = config::find_variable(name);
    return variable != nullptr && taken(variable->overridden_by);
  }
  bool found() const { return !best_.values.empty(); }

  void find_combinations() {
    const store::ResultCase* baseline = result_.baseline();
    for (const analysis::CaseSummary& row : summary_.cases) {
      if (result_.at(row).variable != config::combination || baseline == nullptr) continue;
      try {
        Values values;
        for (const std::string& variable : result_.variables) {
          const std::string_view value = result_.setting(result_.at(row), variable);
          if (value != result_.setting(*baseline, variable)) values[variable] = canonical(variable, std::string(value));
        }
        measured_.push_back({&row, std::move(values)});
      } catch (const Error&) {  // another version's variable: it cannot be asked for again
      }
    }
  }
  static bool sets_settings(const Values& values) {
    const auto setting = [](const auto& value) { return config::purpose_of(value.first) == config::Purpose::setting; };
    return !values.empty() && std::ranges::all_of(values, setting);
  }

  const analysis::CaseSummary* row_of(const std::string& name) const {
    const auto found = std::ranges::find(summary_.cases, name, &analysis::CaseSummary::name);
    return found == summary_.cases.end() ? nullptr : &*found;
  }
  // The row of a combination of exactly these values; nullptr if none was measured.
  const analysis::CaseSummary* row_of(const Values& values) const {
    const auto found = std::ranges::find(measured_, values, &Combination::values);
    return found == measured_.end() ? nullptr : found->row;
  }
  // Proven slower, or nothing that would come out otherwise a second time.
  static bool is_settled_badly(const analysis::CaseSummary& row) {
    if (row.status == store::CaseStatus::failed || row.status == store::CaseStatus::impossible) return true;
    if (analysis::timed_something_else(row.judgement)) return true;
    return row.judgement.verdict == analysis::Verdict::slower ||
           row.judgement.verdict == analysis::Verdict::not_honoured;
  }
  std::string remark_on(const analysis::CaseSummary* row) const {
    return row == nullptr ? fmt::format("not measured in {}", file_) : outcome_of(*row);
  }

  void read_sweep() {
    const YamlNode* sweep = root_.find("sweep");
    if (sweep == nullptr || sweep->kind != YamlNode::Kind::map) return;
    for (const YamlNode& list : sweep->children) {
      SweepLine& line = lines_.emplace_back();
      line.variable = list.key;
      if (list.kind != YamlNode::Kind::sequence) {
        line.as_it_was = config::flow(list);
        continue;
      }
      for (const YamlNode& item : list.children) sort_in(canonical_or_as_is(list.key, item), line);
    }
  }

  void sort_in(const std::string& value, SweepLine& line) const {
    if (value == new_value(line.variable)) return;  // the baseline measures it
    if (value == old_value(line.variable)) {
      line.left_out.push_back(fmt::format("{}: the baseline's until now, proven slower than {}", value, best_.name));
      return;
    }
    const analysis::CaseSummary* row = row_of(fmt::format("{}={}", line.variable, value));
    if (row != nullptr && is_settled_badly(*row)) {
      line.left_out.push_back(fmt::format("{}: {}", value, remark_on(row)));
    } else {
      line.kept.push_back({value, remark_on(row)});
    }
  }

  void read_combinations() {
    const YamlNode* combine = root_.find("combine");
    if (combine == nullptr || combine->kind != YamlNode::Kind::sequence) return;
    for (const YamlNode& item : combine->children) {
      Values values;
      for (const YamlNode& child : item.children) values[child.key] = canonical_or_as_is(child.key, child);
      const analysis::CaseSummary* row = row_of(values);
      if (row != nullptr && is_settled_badly(*row)) {
        combinations_left_out_.push_back(fmt::format("{}: {}", row->name, remark_on(row)));
      } else {
        add_combination(values, remark_on(row));
      }
    }
  }

  // Against the next baseline: what that has already is no part of it, and a single value left is a value to sweep.
  void add_combination(Values values, const std::string& remark) {
    std::erase_if(values, [&](const auto& entry) { return entry.second == new_value(entry.first); });
    if (values.size() > 1) {
      const auto same = std::ranges::find(combinations_, values, &std::pair<Values, std::string>::first);
      if (same == combinations_.end()) combinations_.emplace_back(std::move(values), remark);
    } else if (values.size() == 1) {
      const auto& [variable, value] = *values.begin();
      auto line = std::ranges::find(lines_, variable, &SweepLine::variable);
      if (line == lines_.end()) line = lines_.insert(line, {variable, "", {}, {}});
      auto known = std::ranges::find(line->kept, value, &Candidate::value);
      if (known == line->kept.end()) known = line->kept.insert(known, {value, ""});
      known->remark = remark;
    }
  }

  // Each was proven alone: nobody knows whether the gains add up.
  void add_the_joint_case() {
    Values joint;
    std::vector<std::string> names;
    for (const Winner& winner : singles_) {
      const auto& [variable, value] = *winner.values.begin();
      if (taken(variable)) continue;
      joint[variable] = value;
      names.push_back(winner.evidence);
    }
    if (joint.empty()) return;
    joint_ = true;
    add_combination(joint,
                    fmt::format("with the new baseline all proven changes together, which nothing proves yet: {}",
                                join(names, "; ")));
  }

  std::string head() const {
    std::string out;
    const auto paragraph = [&](const std::string& text) {
      std::istringstream lines(wrapped(one_line(text), 116, 0));
      for (std::string line; std::getline(lines, line);) out += "# " + line + "\n";
    };
    paragraph(fmt::format("The next configuration after {}: sweep {} of {}, run {}, {}.", file_, result_.name,
                          result_.created, result_.run_uuid, plural(result_.ranks, "rank")));
    if (summary_.partial) paragraph("That sweep is not complete: more rounds may settle what is unresolved here.");
    if (!result_.ranks_are_gpus()) {
      paragraph(fmt::format("Measured on backend {}: this says nothing about a GPU.", one_line(result_.backend)));
    }
    if (!found()) {
      paragraph("Nothing is proven faster: the baseline stays as it was. Only what is settled has left the lists.");
    } else {
      paragraph(fmt::format("The baseline takes the fastest proven change, {}.{}", best_.name,
                            joint_ ? " All proven changes together are a case of their own." : ""));
    }
    if (lines_are_empty() && combinations_.empty()) paragraph("Nothing is left to try: add values under `sweep`.");
    paragraph("What has no comment is as it was.");
    return out;
  }

  static void remark(std::string& out, const std::string& text) { out += "  # " + one_line(text) + "\n"; }

  std::string baseline_text(const YamlNode& section) const {
    std::string out;
    for (const YamlNode& child : section.children) {
      if (!taken(child.key) && !superseded(child.key))
        out += fmt::format("  {}: {}\n", config::yaml_word(child.key), config::flow(child));
    }
    if (found()) remark(out, best_.evidence);
    for (const auto& [variable, value] : best_.values) {
      remark(out, fmt::format("{} until now; run {}", old_value(variable), result_.run_uuid));
      out += fmt::format("  {}: {}\n", variable, config::yaml_value(value));
    }
    return out.empty() ? "baseline: {}\n" : "baseline:\n" + out;
  }

  bool lines_are_empty() const {
    return std::ranges::all_of(lines_,
                               [](const SweepLine& line) { return line.kept.empty() && line.as_it_was.empty(); });
  }

  std::string sweep_text() const {
    std::string out;
    for (const SweepLine& line : lines_) {
      for (const Candidate& candidate : line.kept)
        remark(out, fmt::format("{}: {}", candidate.value, candidate.remark));
      for (const std::string& why : line.left_out) remark(out, fmt::format("left out: {}={}", line.variable, why));
      if (!line.as_it_was.empty()) out += fmt::format("  {}: {}\n", config::yaml_word(line.variable), line.as_it_was);
      if (line.kept.empty()) continue;
      std::vector<std::string> values;
      for (const Candidate& candidate : line.kept) values.push_back(config::yaml_value(candidate.value));
      out += fmt::format("  {}: [{}]\n", config::yaml_word(line.variable), join(values, ", "));
    }
    if (out.empty()) return "";
    return (lines_are_empty() ? "# sweep:\n" : "sweep:\n") + out;
  }

  std::string combine_text() const {
    std::string out;
    for (const auto& [values, why] : combinations_) {
      remark(out, why);
      std::vector<std::string> parts;
      for (const auto& [variable, value] : values)
        parts.push_back(config::yaml_word(variable) + ": " + config::yaml_value(value));
      out += fmt::format("  - {{{}}}\n", join(parts, ", "));
    }
    for (const std::string& why : combinations_left_out_) remark(out, "left out: " + why);
    if (out.empty()) return "";
    return (combinations_.empty() ? "# combine:\n" : "combine:\n") + out;
  }

  const store::Result& result_;
  const analysis::Summary& summary_;
  std::string file_;
  YamlNode root_;
  config::Settings old_;
  std::vector<Winner> singles_;  // by variable
  std::vector<Combination> measured_;
  Winner best_;  // what the baseline takes
  bool joint_ = false;
  std::vector<SweepLine> lines_;
  std::vector<std::pair<Values, std::string>> combinations_;
  std::vector<std::string> combinations_left_out_;
};

}  // namespace

std::string next_configuration(const store::Result& result, const analysis::Summary& summary, const Proven& proven,
                               const std::string& case_name, const std::string& file) {
  return NextSweep(result, summary, proven, case_name, file).text();
}

}  // namespace harness::report
