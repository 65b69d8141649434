#include "report/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/clean_text.h"
#include "report/effect_words.h"
#include "report/proven.h"
#include "report/show.h"

namespace harness::report {
namespace {

using Outcome = Check::Outcome;

Check check_of(const analysis::Summary& summary, const analysis::CaseSummary& row) {
  Check check{"show", row.name, Outcome::passed, outcome_of(row)};
  if (std::isfinite(row.step_seconds)) check.seconds = row.step_seconds;
  if (!row.reason.empty()) check.line += ": " + row.reason;
  const bool moved = row.role == store::CaseRole::control && summary.unreliable;
  if (row.status == store::CaseStatus::failed || moved) {
    check.outcome = Outcome::failed;
  } else if (row.blocks == 0) {
    check.outcome = Outcome::skipped;
  }
  for (const analysis::LostBlock& lost : summary.lost) {
    if (lost.case_index != row.case_index) continue;
    check.line += fmt::format("; lost its block of round {}: {}", lost.round + 1, lost.reason);
    if (lost.cost_a_verdict) check.outcome = Outcome::failed;
  }
  if (moved) check.line += "; it repeats the baseline, so no verdict of this sweep counts";
  return check;
}

// Always there, so that a report of files that cannot be compared is no empty one.
Check check_of_files(const ComparisonReport& report) {
  std::vector<std::string> reasons = report.incomparable;
  reasons.insert(reasons.end(), report.unreliable.begin(), report.unreliable.end());
  if (reasons.empty() && report.nothing_in_common()) reasons.emplace_back("They have no measured case in common.");
  if (reasons.empty()) return {"compare", "the files", Outcome::passed, "they can be compared"};
  return {"compare", "the files", Outcome::failed, join(reasons, " ")};
}

std::string line_of(const analysis::CaseComparison& row) {
  if (!row.measured_on_both()) return "not measured on both sides";
  return fmt::format("{}, {} {}", analysis::name_of(row.judgement), change_words(row.ratio),
                     interval_words(row.low, row.high));
}

Check check_of(const analysis::Comparison& comparison, const analysis::CaseComparison& row, const std::string& group,
               const std::optional<analysis::Gate>& gate) {
  Check check{group, row.name, Outcome::passed, line_of(row)};
  if (std::isfinite(row.second.step_seconds)) check.seconds = row.second.step_seconds;
  if (!row.measured_on_both()) check.outcome = Outcome::skipped;
  if (analysis::fails(gate.value_or(analysis::Gate{}), comparison, row)) check.outcome = Outcome::failed;
  if (check.outcome == Outcome::failed && gate && gate->fails_on == analysis::Gate::FailsOn::not_proven_within) {
    check.line +=
        fmt::format("; not proven to be within {:.3g} %", 100 * gate->share.value_or(comparison.smallest_effect));
  }
  return check;
}

std::string sides_of(const std::vector<std::string>& first, const std::vector<std::string>& second) {
  return fmt::format("{} against {}", join(second, ", "), join(first, ", "));
}

std::string xml_line(std::string_view text) {
  return escaped_markup(one_line(text));
}

// As GitHub's runner takes them apart again. one_line() has left no line breaks.
std::string escaped_for_github(std::string_view text, bool property) {
  const std::string line = one_line(text);
  return property ? replaced(line, {{'%', "%25"}, {':', "%3A"}, {',', "%2C"}}) : replaced(line, {{'%', "%25"}});
}

std::string command(std::string_view level, const std::string& title, const std::string& text) {
  return fmt::format("::{} title={}::{}\n", level, escaped_for_github(title, true), escaped_for_github(text, false));
}

auto count_of(const Checks& checks, Outcome outcome) {
  return std::ranges::count(checks.checks, outcome, &Check::outcome);
}

}  // namespace

Checks checks_of(const store::Result& result, const analysis::Summary& summary) {
  Checks out{"harness show " + result.name, result.created, headline(result, summary), {}, summary.warnings};
  for (const analysis::CaseSummary& row : summary.cases) out.checks.push_back(check_of(summary, row));
  return out;
}

Checks checks_of(const ComparisonReport& report, const std::optional<analysis::Gate>& gate) {
  Checks out{"harness compare", "", "", {check_of_files(report)}, {}};
  for (const analysis::Comparison& comparison : report.comparisons) {
    const std::string group = sides_of(comparison.first, comparison.second);
    for (const analysis::CaseComparison& row : comparison.cases) {
      out.checks.push_back(check_of(comparison, row, group, gate));
    }
    for (const std::string& line : comparison.machines_differ)
      out.warnings.push_back(line + ": not to be judged; measure again");
    for (const std::string& line : comparison.not_aligned) out.warnings.push_back("Not compared: " + line);
  }
  for (const analysis::Reproduction& pair : report.reproductions) {
    for (const analysis::ChangeReproduction& row : pair.changes) {
      const bool failed =
          row.reproduced == analysis::Reproduced::no || row.reproduced == analysis::Reproduced::opposite;
      out.checks.push_back({sides_of(pair.first, pair.second), row.name, failed ? Outcome::failed : Outcome::passed,
                            analysis::name_of(row.reproduced)});
    }
  }
  const auto failures = count_of(out, Outcome::failed);
  out.headline = failures == 0 ? fmt::format("{} checks, none failed.", out.checks.size())
                               : fmt::format("{} of {} checks failed.", failures, out.checks.size());
  return out;
}

std::string write_junit(const Checks& checks) {
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n";
  out += fmt::format("  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\"",
                     xml_line(checks.suite), checks.checks.size(), count_of(checks, Outcome::failed),
                     count_of(checks, Outcome::skipped));
  out += checks.created.empty() ? ">\n" : fmt::format(" timestamp=\"{}\">\n", xml_line(checks.created));
  for (const Check& check : checks.checks) {
    out += fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{:.9g}\">", xml_line(check.group),
                       xml_line(check.name), check.seconds);
    const std::string line = xml_line(check.line);
    switch (check.outcome) {
      case Outcome::failed:
        out += fmt::format("<failure message=\"{0}\">{0}</failure>", line);
        break;
      case Outcome::skipped:
        out += fmt::format("<skipped message=\"{}\"/>", line);
        break;
      case Outcome::passed:
        out += fmt::format("<system-out>{}</system-out>", line);
        break;
    }
    out += "</testcase>\n";
  }
  std::string words = xml_line(checks.headline);
  for (const std::string& warning : checks.warnings) words += "\n! " + xml_line(warning);
  return out + fmt::format("    <system-out>{}</system-out>\n  </testsuite>\n</testsuites>\n", words);
}

std::string write_github(const Checks& checks) {
  std::string out;
  for (const Check& check : checks.checks) {
    if (check.outcome == Outcome::failed) out += command("error", check.name, check.line);
  }
  for (const std::string& warning : checks.warnings) out += command("warning", checks.suite, warning);
  return out + command("notice", checks.suite, checks.headline);
}

}  // namespace harness::report
