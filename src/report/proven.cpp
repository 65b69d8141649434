#include "report/proven.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "config/env_value.h"
#include "config/registry.h"
#include "report/clean_text.h"
#include "report/effect_words.h"
#include "report/scale.h"

namespace harness {
namespace {

std::string commit_of(const Result& result) {
  for (const auto& [name, value] : result.identity) {
    if (name == "harness") return value;
  }
  return result.tool_version;
}

std::string change_of(const Effect& effect) {
  if (!std::isfinite(effect.ratio)) return "no ratio";
  std::string text = "time " + signed_percent(effect.ratio - 1);
  if (!std::isfinite(effect.low)) return text;
  return text + fmt::format(" [{}, {}]", signed_percent(effect.low - 1), signed_percent(effect.high - 1));
}

std::string why_not(const CaseSummary& one) {
  if (one.status == CaseStatus::failed || one.status == CaseStatus::impossible) return name_of(one.status);
  if (!one.effect || one.effect->verdict == Verdict::none) return "not measured in enough rounds";
  return fmt::format("{}, {} in {} rounds", name_of(one.effect->verdict), change_of(*one.effect), one.effect->rounds);
}

// Reads the value as a configuration would, so that nothing goes out that harness would not take in.
ProvenSetting read_back(const Result& result, const CaseSummary& one, const std::string& file) {
  const ResultCase& row = result.at(one);
  const Variable* variable = find_variable(row.variable);
  if (variable == nullptr) fail("this version of harness knows no variable {}", quote(row.variable));
  ProvenSetting proven;
  variable->parse(proven.settings, row.value);
  proven.name = fmt::format("{}={}", variable->name, variable->print(proven.settings));
  proven.variable = variable->name;
  proven.value = variable->print(proven.settings);
  if (!variable->environment_name.empty() && proven.value != "default") {
    const auto& text = variable->environment_text;
    proven.environment.emplace_back(variable->environment_name, text ? text(proven.value) : proven.value);
  }
  for (const auto& [name, value] : proven.settings.env) {
    check_env_entry(name, value);
    proven.environment.emplace_back(name, value);
  }
  proven.evidence = one_line(fmt::format("{}: {}, {} rounds; {}, harness {}", proven.name, change_of(*one.effect),
                                         one.effect->rounds, file, commit_of(result)));
  return proven;
}

const CaseSummary& find_summary(const Summary& summary, const std::string& name) {
  std::vector<std::string> names;
  for (const CaseSummary& one : summary.cases) {
    if (one.name == name) return one;
    names.push_back(one.name);
  }
  fail("there is no case {}{}", quote(name), did_you_mean(nearest(name, names)));
}

std::size_t place_in_registry(const std::string& name) {
  const auto names = variable_names();
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

}  // namespace

Proven find_proven(const Result& result, const Summary& summary, const std::string& case_name,
                   const std::string& file) {
  if (summary.unreliable) {
    throw Error(fmt::format("{} proves nothing: its control, baseline_again, came out {} than the baseline that it "
                            "repeats; measure again when the machine is quiet",
                            quote(file), name_of(summary.control->verdict)),
                4);
  }
  if (!case_name.empty()) {
    const CaseSummary& one = find_summary(summary, case_name);
    if (one.role != CaseRole::change)
      fail("{} is the baseline: it changes nothing that could be exported", quote(case_name));
    if (!one.effect || one.effect->verdict != Verdict::faster) {
      fail("{} is not proven faster ({}): only what is proven is exported", quote(case_name), why_not(one));
    }
  }
  std::vector<const CaseSummary*> faster;
  Proven out;
  for (const CaseSummary& one : summary.cases) {
    if (one.role != CaseRole::change || (!case_name.empty() && one.name != case_name)) continue;
    if (one.effect && one.effect->verdict == Verdict::faster) {
      faster.push_back(&one);
    } else {
      out.left_out.push_back(one_line(fmt::format("{}: {}", one.name, why_not(one))));
    }
  }
  std::stable_sort(faster.begin(), faster.end(),
                   [](const auto* a, const auto* b) { return a->effect->ratio < b->effect->ratio; });
  for (const CaseSummary* one : faster) {
    std::optional<ProvenSetting> setting;
    try {
      setting = read_back(result, *one, file);
    } catch (const Error& error) {
      out.left_out.push_back(
          one_line(fmt::format("{}: proven, but cannot be read: {}", quote(one->name), error.what())));
      continue;
    }
    const auto taken = std::find_if(out.settings.begin(), out.settings.end(),
                                    [&](const auto& other) { return other.variable == setting->variable; });
    if (taken == out.settings.end()) {
      out.settings.push_back(std::move(*setting));
    } else {
      out.left_out.push_back(one_line(
          fmt::format("{}: proven too ({}), but {} is faster", setting->name, change_of(*one->effect), taken->name)));
    }
  }
  std::stable_sort(out.settings.begin(), out.settings.end(), [](const auto& a, const auto& b) {
    return place_in_registry(a.variable) < place_in_registry(b.variable);
  });
  return out;
}

}  // namespace harness
