#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "base/units.h"
#include "config/backend.h"
#include "report/sections.h"

namespace harness::report {
namespace {

std::string name_of_kind(const analysis::KindCompared& row) {
  std::string name = row.kind;
  if (!row.group.empty()) name += fmt::format(" ({})", row.group);
  if (row.recomputed) name += ", recomputed";
  return name;
}

// Rows that would round to zero on both sides are omitted.
constexpr double least_shown = 0.0005;  // of the step

// Steps of up to ten seconds are shown in milliseconds, because single kinds of operations are short.
constexpr double least_in_seconds = 0.1;

Table compared_table(const analysis::CaseCompared& compared, bool of_prediction) {
  const double longest_s = std::max(compared.measured_s, compared.predicted_s);
  const Scale scale = scale_of_seconds(std::array{least_in_seconds * longest_s});
  const char* measured = of_prediction ? "with faults" : "measured";
  const char* predicted = of_prediction ? "without" : "predicted";
  Table table;
  table.columns = {{"kind of operation", true},
                   {fmt::format("{} {}", measured, scale.unit)},
                   {fmt::format("{} {}", predicted, scale.unit)},
                   {.heading = "ratio", .worth = 10},
                   {"of the step"},
                   {predicted},
                   {"excess"}};
  using Seconds = std::optional<double>;
  const auto number = [&](const Seconds& s) { return s ? fmt::format("{:.2f}", *s / scale.factor + 0.0) : ""; };
  const auto add = [&](const std::string& name, Seconds takes, Seconds expected, double owns, double owns_expected) {
    const bool has_ratio = takes > 0.0 && expected > 0.0;
    table.rows.push_back({name, number(takes), number(expected),
                          has_ratio ? fmt::format("{:.2f}", *takes / *expected) : "", number(owns),
                          number(owns_expected), signed_number((owns - owns_expected) / scale.factor, 2)});
  };
  for (const analysis::KindCompared& row : compared.kinds) {
    if (std::max({row.measured_takes_s, row.predicted_takes_s, row.measured_owns_s}) >= least_shown * longest_s)
      add(name_of_kind(row), row.measured_takes_s, row.predicted_takes_s, row.measured_owns_s, row.predicted_owns_s);
  }
  for (const analysis::PartCompared& row : compared.parts)
    add(name_of(row.part), {}, {}, row.measured_s, row.predicted_s);
  add("step, profiled", compared.measured_s, compared.predicted_s, compared.measured_s, compared.predicted_s);
  return table;
}

List not_predicted(const store::Result& result, const analysis::Explanation& explanation) {
  constexpr std::size_t most_named = 8;
  List lines;
  for (const analysis::CaseNotPredicted& row : explanation.not_predicted)
    lines.items.push_back(fmt::format("{}: {}", short_name(result.at(row).name), row.why));
  if (const std::size_t all = lines.items.size(); all > most_named) {
    lines.items.resize(most_named);
    lines.items.push_back(fmt::format("{} more", all - most_named));
  }
  return lines;
}

// A prediction without faults is not compared with itself.
bool is_its_own(const analysis::Explanation& explanation) {
  constexpr double rounding = 1e-6;
  return explanation.of_prediction && explanation.why_none.empty() &&
         std::ranges::all_of(explanation.cases, [](const analysis::CaseCompared& c) {
           return std::abs(c.measured_s - c.predicted_s) < rounding * c.predicted_s;
         });
}

std::string cause_words(const analysis::Cause& cause) {
  std::string text = fmt::format("{} ({})", cause.words, cause.fault);
  for (const auto& [fault, words] : cause.or_else) text += fmt::format(", or {} ({})", words, fault);
  if (!cause.confirmed_by.empty()) text += fmt::format("; doctor found it, too ({})", cause.confirmed_by);
  return text;
}

std::string slow_computing(const analysis::Diagnosis& d) {
  return fmt::format("computation runs at {} of predicted, on all ranks alike", percent(1 / d.compute_factor, 0));
}

bool computes_slowly(const analysis::Diagnosis& d) {
  return d.compute_factor - 1 > d.margin;
}

// Exceeds the error of the prediction.
bool is_much(double seconds, const analysis::Diagnosis& d) {
  return seconds > d.margin * d.healthy_s;
}

std::string margin_words(const analysis::Diagnosis& d) {
  return d.error_is_known
             ? fmt::format("the expected error of {}", percent(d.margin))
             : fmt::format("{}, the margin of a calibration without a step of this cluster", percent(d.margin));
}

std::string words_without_cause(const analysis::Diagnosis& d, const std::string& both) {
  const double excess_s = d.measured_s - d.healthy_s;
  if (is_much(-excess_s, d)) {
    return fmt::format(
        "Diagnosis: the step takes {} less than predicted, more than {}: its hardware file or the calibration promises "
        "too little ({}).",
        percent(-excess_s / d.healthy_s, 0), margin_words(d), both);
  }
  if (!is_much(excess_s, d))
    return fmt::format("Diagnosis: as fast as predicted, within {} ({}).", margin_words(d), both);
  const double computing_s = std::min(d.explained_s - d.healthy_s, excess_s);
  if (!computes_slowly(d) || computing_s <= 0)
    return fmt::format("Diagnosis: {} longer than predicted, and no fault that is known here looks like it ({}).",
                       percent(excess_s / d.healthy_s, 0), both);
  const bool is_all = !is_much(d.measured_s - d.explained_s, d);
  return fmt::format(
      "Diagnosis: {}{}, a matter of power, clocks or the software, which explains {} of the {} that are too long "
      "({}).{}",
      is_all ? "no fault of the cluster; " : "", slow_computing(d), show_seconds(computing_s), show_seconds(excess_s),
      both, is_all ? "" : " The rest looks like no fault that is known here.");
}

}  // namespace

std::string diagnosis_words(const analysis::Explanation& explanation) {
  if (!explanation.diagnosis || is_its_own(explanation)) return "";
  const analysis::Diagnosis& d = *explanation.diagnosis;
  if (!(d.measured_s > 0 && d.healthy_s > 0)) return "";
  const std::string both = fmt::format("{} {}, healthy {}", explanation.of_prediction ? "with its faults" : "measured",
                                       show_seconds(d.measured_s), show_seconds(d.healthy_s));
  if (d.causes.empty()) return words_without_cause(d, both);
  std::vector<std::string> causes, checks;
  for (const analysis::Cause& cause : d.causes) {
    causes.push_back(cause_words(cause));
    checks.insert(checks.end(), cause.checks.begin(), cause.checks.end());
  }
  std::string text = fmt::format("Diagnosis: {}. With {} the step is predicted at {}; {}.", join(causes, "; and "),
                                 causes.size() > 1 ? "them" : "it", show_seconds(d.explained_s), both);
  if (computes_slowly(d)) text += fmt::format(" Besides, {}.", slow_computing(d));
  if (const double rest_s = d.measured_s - d.explained_s; is_much(rest_s, d))
    text += fmt::format(" {} of its time remain unexplained.", show_seconds(rest_s));
  if (!checks.empty()) {
    const bool open = std::ranges::any_of(d.causes, [](const analysis::Cause& c) { return !c.or_else.empty(); });
    text += fmt::format(" harness doctor {}: {}.", open ? "tells which" : "would see it", join(checks, ", "));
  }
  return text;
}

void add_diagnosis(const analysis::Findings& findings, Document& document) {
  std::string words = findings.explanation ? diagnosis_words(*findings.explanation) : "";
  if (!words.empty()) document.notices.push_back({std::move(words), explanation_id});
}

Section explanation_section(const store::Result& result, const analysis::Findings& findings) {
  Section section{explanation_id, "Measured against predicted", {}};
  if (!findings.explanation) return section;
  // A step is predicted only if it was measured on GPUs.
  if (!result.ranks_are_gpus() && !config::traits_of(result.backend).predicts()) return section;
  const analysis::Explanation& explained = *findings.explanation;
  if (is_its_own(explained)) return section;
  if (explained.of_prediction) section.title = "Predicted with its faults against predicted without";
  if (!explained.why_none.empty()) {
    section.add(Paragraph{fmt::format("There is no prediction to hold it against: {}.", explained.why_none)});
    return section;
  }
  section.add(Paragraph{fmt::format(
      "What each kind of operation takes, and what it costs the step, beside what is predicted for {} with the "
      "calibration {}; means over ranks. Communications count without the waiting for others, which has a line of its "
      "own. The last three columns add up to the step.",
      explained.hardware, explained.calibration)});
  if (!explained.why_no_diagnosis.empty())
    section.add(Paragraph{fmt::format("There is no diagnosis: {}.", explained.why_no_diagnosis)});
  for (const analysis::CaseCompared& compared : explained.cases) {
    section.add(Subheading{short_name(result.at(compared).name)});
    section.add(Numbers{"", compared_table(compared, explained.of_prediction)});
  }
  if (!explained.not_predicted.empty()) {
    section.add(Subheading{"Without a prediction"});
    section.add(not_predicted(result, explained));
  }
  return section;
}

}  // namespace harness::report
