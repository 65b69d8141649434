#include "report/proven.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "config/environment.h"
#include "config/experiment.h"
#include "config/registry.h"
#include "report/clean_text.h"
#include "report/words.h"

namespace harness::report {
namespace {

std::string commit_of(const store::Result& result) {
  for (const auto& [name, value] : result.identity) {
    if (name == "harness") return value;
  }
  return result.tool_version;
}

std::string proven_change(const analysis::Effect& effect) {
  if (!std::isfinite(effect.ratio)) return "no ratio";
  std::string text = "time " + signed_percent(effect.ratio - 1);
  if (!std::isfinite(effect.low)) return text;
  return text + fmt::format(" [{}, {}]", signed_percent(effect.low - 1), signed_percent(effect.high - 1));
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

const analysis::CaseSummary& find_summary(const analysis::Summary& summary, const std::string& name) {
  std::vector<std::string> names;
  for (const analysis::CaseSummary& row : summary.cases) {
    if (row.name == name) return row;
    names.push_back(row.name);
  }
  fail("there is no case {}{}", quote(name), did_you_mean(nearest(name, names)));
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

}  // namespace

std::string outcome_of(const analysis::CaseSummary& row) {
  if (!store::may_run(row.status)) return store::name_of(row.status);
  if (!row.effect || row.effect->verdict == analysis::Verdict::none) return analysis::name_of(row.judgement);
  return fmt::format("{}, {} in {}", analysis::name_of(row.effect->verdict), proven_change(*row.effect),
                     plural(row.effect->rounds, "round"));
}

std::string evidence_for(const store::Result& result, const analysis::CaseSummary& row, const std::string& name,
                         const std::string& file) {
  return one_line(fmt::format("{}: {}, {}; {}, harness {}", name, proven_change(*row.effect),
                              plural(row.effect->rounds, "round"), file, commit_of(result)));
}

Proven find_proven(const store::Result& result, const analysis::Summary& summary, const std::string& case_name,
                   const std::string& file) {
  if (summary.unreliable) {
    throw Error(fmt::format("{} proves nothing: its control, baseline_again, is {} than the baseline that it "
                            "repeats. Measure again when the machine is quiet.",
                            quote(file), analysis::name_of(summary.control->verdict)),
                4);
  }
  if (!case_name.empty()) {
    const analysis::CaseSummary& row = find_summary(summary, case_name);
    if (row.role != store::CaseRole::change)
      fail("{} is the baseline: it changes nothing that could be exported", quote(case_name));
    if (!analysis::is_proven(row)) {
      fail("{} is not proven faster ({}): only what is proven is exported", quote(case_name), outcome_of(row));
    }
  }
  Proven out;
  const auto asked_for = [&](const analysis::CaseSummary& row) { return case_name.empty() || row.name == case_name; };
  std::vector<const analysis::CaseSummary*> proven = summary.proven_changes();
  for (const analysis::CaseSummary& row : summary.cases) {
    if (row.role != store::CaseRole::change || !asked_for(row)) continue;
    if (!analysis::is_proven(row)) {
      out.left_out.push_back(one_line(fmt::format("{}: {}", row.name, outcome_of(row))));
    } else if (row.another_training && !case_name.empty()) {
      proven.push_back(&row);
    } else if (row.another_training) {
      out.left_out.push_back(one_line(fmt::format("{}: another training ({})", row.name, outcome_of(row))));
    }
  }
  for (const analysis::CaseSummary* row : proven) {
    if (!asked_for(*row)) continue;
    const analysis::CaseSummary* slower = slower_elsewhere(result, summary, *row);
    if (slower != nullptr && case_name.empty()) {
      out.left_out.push_back(one_line(fmt::format("{}: proven here ({}), but {} is {}", row->name,
                                                  proven_change(*row->effect), slower->name, outcome_of(*slower))));
      continue;
    }
    std::optional<ProvenSetting> setting;
    try {
      setting = read_back(result, *row, file);
    } catch (const Error& error) {
      out.left_out.push_back(
          one_line(fmt::format("{}: proven, but its value cannot be read: {}", quote(row->name), error.what())));
      continue;
    }
    const auto taken = std::ranges::find(out.settings, setting->variable, &ProvenSetting::variable);
    if (taken == out.settings.end()) {
      out.settings.push_back(std::move(*setting));
    } else {
      out.left_out.push_back(one_line(fmt::format("{}: proven too ({}), but {} is faster", setting->name,
                                                  proven_change(*row->effect), taken->name)));
    }
  }
  std::ranges::stable_sort(out.settings, {},
                           [](const ProvenSetting& setting) { return place_in_registry(setting.variable); });
  return out;
}

}  // namespace harness::report
