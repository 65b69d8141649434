#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "config/backend.h"
#include "config/environment.h"
#include "config/experiment.h"
#include "config/registry.h"
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

// Reads the value as a configuration would, so that nothing goes out that harness would not take in.
ExportedSetting read_back(const store::Result& result, const analysis::CaseSummary& row, const std::string& file) {
  const store::ResultCase& of = result.at(row);
  if (of.variable == config::combination)
    fail("several changes together; export its variables from cases of their own");
  const config::Variable* variable = config::find_variable(of.variable);
  if (variable == nullptr) fail("this version of harness knows no variable {}", quote(of.variable));
  ExportedSetting proven;
  variable->parse(proven.settings, of.value);
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

auto place_in_registry(const std::string& name) {
  const auto names = config::variable_names();
  return std::ranges::find(names, name) - names.begin();
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

// Throws Error unless the case is a change that is proven faster.
std::int32_t proven_case(const store::Result& result, const analysis::Summary& summary, const std::string& name) {
  const std::int32_t index = find_case(result, name);
  const analysis::CaseSummary& row = summary.case_at(index);
  if (row.role != store::CaseRole::change)
    fail("{} is the baseline: it changes nothing that could be exported", quote(name));
  if (!analysis::is_proven(row))
    fail("{} is not proven faster ({}): only what is proven is exported", quote(name), outcome_of(row));
  return index;
}

}  // namespace

std::string evidence_for(const store::Result& result, const analysis::CaseSummary& row, const std::string& name,
                         const std::string& file) {
  const std::string program = value_of(result.identity, "harness");  // version and commit, as far as the file says
  return one_line(fmt::format("{}: {}, {}; {}, harness {}", name, proven_change(*row.effect),
                              plural(row.effect->rounds, "round"), file,
                              program.empty() ? result.tool_version : program));
}

std::string outcome_of(const analysis::CaseSummary& row) {
  if (!store::may_run(row.status)) return store::name_of(row.status);
  if (store::is_reference(row.role)) return "the baseline";
  if (!row.effect || row.effect->verdict == analysis::Verdict::none) return analysis::name_of(row.judgement);
  return fmt::format("{}, {} in {}", analysis::name_of(row.effect->verdict), proven_change(*row.effect),
                     plural(row.effect->rounds, "round"));
}

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
      leave_out(row.name, outcome_of(row));
    } else if (row.another_training && !out.only) {
      leave_out(row.name, fmt::format("another training ({})", outcome_of(row)));
    } else {
      proven.push_back(&row);
    }
  }
  std::ranges::stable_sort(proven, {}, [](const analysis::CaseSummary* row) { return row->effect->ratio; });
  for (const analysis::CaseSummary* row : proven) {
    const std::string change = proven_change(*row->effect);
    const analysis::CaseSummary* slower = slower_elsewhere(result, summary, *row);
    if (slower != nullptr && !out.only) {
      leave_out(row->name, fmt::format("proven here ({}), but {} is {}", change, slower->name, outcome_of(*slower)));
      continue;
    }
    try {
      ExportedSetting setting = read_back(result, *row, file);
      const auto taken = std::ranges::find(out.settings, setting.variable, &ExportedSetting::variable);
      if (taken == out.settings.end()) {
        out.settings.push_back(std::move(setting));
      } else {
        leave_out(row->name, fmt::format("proven too ({}), but {} is faster", change, taken->value));
      }
    } catch (const Error& error) {
      leave_out(quote(row->name), fmt::format("proven, but its value cannot be read: {}", error.what()));
    }
  }
  std::ranges::stable_sort(out.settings, {}, [](const auto& setting) { return place_in_registry(setting.variable); });
  out.about = about_proven(result, out.settings.size(), file);
  if (result.points.empty()) out.model = result.model;
  return out;
}

Export all_settings(const config::Settings& settings, std::optional<config::Model> model,
                    std::vector<std::string> about) {
  Export out{.about = std::move(about), .settings = {}, .left_out = {}, .model = std::move(model), .only = {}};
  const config::Settings defaults;
  for (const config::Variable& variable : config::registry()) {
    const bool is_environment = !variable.environment_name.empty() || variable.free_parts;
    const config::Variable* other =
        variable.overridden_by.empty() ? nullptr : config::find_variable(variable.overridden_by);
    const bool is_decided_elsewhere = other != nullptr && other->print(settings) != other->print(defaults);
    if (variable.fixed || is_environment || is_decided_elsewhere) continue;
    const std::string value = variable.print(settings);
    out.settings.push_back({.variable = variable.name,
                            .value = value,
                            .settings = settings,
                            .environment = {},
                            .evidence = fmt::format("{}={}", variable.name, value),
                            .is_default = value == variable.print(defaults)});
  }
  ExportedSetting environment;
  environment.environment = config::environment_of(settings);
  environment.evidence = "environment";
  if (!environment.environment.empty()) out.settings.push_back(std::move(environment));
  return out;
}

Export planned_case(const store::Result& result, const analysis::Summary& summary, const std::string& case_name,
                    const std::string& file) {
  const std::int32_t index = find_case(result, case_name);
  const store::ResultCase& row = result.case_at(index);
  config::Settings settings;
  for (std::size_t v = 0; v < result.variables.size(); ++v) {
    const config::Variable* variable = config::find_variable(result.variables[v]);
    if (variable == nullptr) fail("this version of harness knows no variable {}", quote(result.variables[v]));
    if (!variable->fixed) variable->parse(settings, row.settings[v]);
  }
  for (const auto& [name, value] : settings.env) config::check_env_entry(name, value);
  std::vector<std::string> about{fmt::format("All settings of {} in {} ({}): {}.", row.name, file,
                                             measured_what(result), outcome_of(summary.case_at(index)))};
  if (config::traits_of(result.backend).predicts()) about.emplace_back("Predicted, not measured.");
  return all_settings(settings, result.points.empty() ? std::optional(result.model) : std::nullopt, std::move(about));
}

}  // namespace harness::report
