#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/statistics.h"
#include "base/error.h"
#include "base/text.h"
#include "report/effect_words.h"
#include "report/scale.h"
#include "report/sections.h"
#include "report/show_comparison.h"

namespace harness::report {
namespace {

// The relative scatter of what one side's value rests on.
std::string scatter(const std::vector<double>& values) {
  if (values.size() < 2) return "";
  std::vector<double> logs;
  for (const double value : values) logs.push_back(std::log(value));
  return fmt::format(" ± {:.1f} %", 100 * analysis::standard_deviation(logs));
}

// What a side's value and its interval rest on: runs, or blocks of one run.
const std::vector<double>& sample_of(const analysis::Comparison& comparison, const analysis::CaseSide& side) {
  return comparison.between_runs ? side.run_seconds : side.block_seconds;
}

constexpr const char* impossible_on_both = "impossible on both sides";

Cell verdict_of(const analysis::CaseComparison& row) {
  if (row.measured_on_both()) return {analysis::name_of(row.judgement), tone_of(row.judgement)};
  if (row.impossible) return impossible_on_both;
  if (!row.first.run_seconds.empty()) return "not measured in B";
  return row.second.run_seconds.empty() ? "not measured" : "not measured in A";
}

Cell compared_change(const analysis::CaseComparison& row) {
  if (!row.measured_on_both()) return "";
  const bool told = analysis::moved(row.judgement.verdict) || row.judgement.reason == analysis::Reason::predicted;
  return told ? change_cell(row.ratio) : "~";
}

struct PartOfBoth {
  std::string name;
  double first, second;  // NaN where that side has no such part
};

// In the first side's order, what only the second has last; nothing where the file of a side does not tell its parts.
std::vector<PartOfBoth> parts_side_by_side(const analysis::CaseComparison& row) {
  if (row.first.parts.empty() || row.second.parts.empty()) return {};
  std::vector<PartOfBoth> both;
  for (const analysis::StepPart& part : row.first.parts) both.push_back({part.name, part.seconds, NAN});
  for (const analysis::StepPart& part : row.second.parts) {
    const auto at = std::ranges::find(both, part.name, &PartOfBoth::name);
    if (at == both.end()) {
      both.push_back({part.name, NAN, part.seconds});
    } else {
      at->second = part.seconds;
    }
  }
  return both;
}

// With its sign, but for what prints as zero.
std::string difference(double seconds, const Scale& scale) {
  if (!std::isfinite(seconds)) return "";
  std::string digits = scale.print(std::abs(seconds));
  const bool zero = digits.find_first_of("123456789") == std::string::npos;
  if (!zero) digits.insert(digits.begin(), seconds < 0 ? '-' : '+');
  return digits;
}

Scale scale_of_steps(const analysis::Comparison& comparison) {
  std::vector<double> seconds;
  for (const analysis::CaseComparison& row : comparison.cases) {
    for (const analysis::CaseSide* side : {&row.first, &row.second}) {
      if (std::isfinite(side->step_seconds)) seconds.push_back(side->step_seconds);
    }
  }
  return scale_of_seconds(seconds);
}

Table parts_table(const analysis::Comparison& comparison) {
  // In a long sweep the cases that did not move would bury those that did; JSON has them all.
  std::vector<const analysis::CaseComparison*> shown;
  double longest = 0;
  for (const analysis::CaseComparison& row : comparison.cases) {
    if (!store::is_reference(row.role) && !analysis::moved(row.judgement.verdict)) continue;
    shown.push_back(&row);
    for (const auto& [name, before, after] : parts_side_by_side(row)) {
      longest = std::max({longest, std::isfinite(before) ? before : 0, std::isfinite(after) ? after : 0});
    }
  }
  const Scale scale = scale_of_seconds(std::vector<double>{longest});
  Table table;
  table.columns = {{"case", true}, {"part of a step", true}, {"A " + scale.unit}, {"B " + scale.unit}, {"B - A"}};
  for (const analysis::CaseComparison* row : shown) {
    for (const auto& [name, before, after] : parts_side_by_side(*row)) {
      table.rows.push_back(
          {row->name, name, scale.print(before), scale.print(after), difference(after - before, scale)});
    }
  }
  return table;
}

std::string what_change_means(const analysis::Comparison& comparison) {
  const bool per_token = std::ranges::any_of(comparison.cases, &analysis::CaseComparison::per_token);
  std::string text = fmt::format("Change: {} of B against A; ~ where no change is proven. A verdict must clear {}.",
                                 per_token ? "time per token (batches differ)" : "step time",
                                 analysis::threshold_words(comparison.smallest_effect));
  text += fmt::format(" ± is the standard deviation of the {}, no confidence interval.",
                      comparison.between_runs ? "runs" : "block medians");
  if (comparison.comparisons > 1) {
    text += fmt::format(" The intervals hold for all {} comparisons together.", comparison.comparisons);
  }
  return text;
}

std::vector<std::string> notes_on(const analysis::Comparison& comparison) {
  std::vector<std::string> notes;
  if (comparison.predicted) {
    notes.push_back(fmt::format(
        "Change: time of B against A, per token where batches differ. Predicted, not measured, on at least one side: "
        "no interval and no verdict; {} a change is too close to call.",
        analysis::within_threshold_words(comparison.smallest_effect)));
  } else {
    notes.push_back(what_change_means(comparison));
  }
  if (comparison.predicted) {
    // nothing scatters
  } else if (comparison.between_runs) {
    notes.emplace_back(
        "n counts runs. The interval is between runs: Welch's t (trimmed, after Yuen, from five runs a side) on the "
        "logarithms of the runs' median step times.");
  } else {
    notes.emplace_back(
        "Variation between runs is not estimated: that needs at least three runs on each side. n counts blocks, and "
        "the interval comes from the scatter of blocks within runs. It is a lower bound of the uncertainty: another "
        "allocation of the same machine may differ by more than these verdicts allow for.");
  }
  for (const std::string& line : comparison.not_aligned) notes.push_back(fmt::format("Not compared: {}.", line));
  return notes;
}

// Of a prediction, which has no verdict, the way it points.
analysis::Verdict direction_of(const analysis::CaseComparison& row) {
  if (row.judgement.reason != analysis::Reason::predicted) return row.judgement.verdict;
  return row.ratio > 1 ? analysis::Verdict::slower : analysis::Verdict::faster;
}

std::string headline_of(const analysis::Comparison& comparison) {
  if (comparison.cases.empty()) {
    return "No case of one side is a case of the other: there is nothing to compare. --anyway compares baseline with "
           "baseline.";
  }
  std::size_t faster = 0, slower = 0, same = 0, open = 0, missing = 0, impossible = 0;
  for (const analysis::CaseComparison& row : comparison.cases) {
    const analysis::Verdict verdict = direction_of(row);
    if (row.impossible) {
      ++impossible;
    } else if (!row.measured_on_both()) {
      ++missing;
    } else if (verdict == analysis::Verdict::faster) {
      ++faster;
    } else if (verdict == analysis::Verdict::slower) {
      ++slower;
    } else if (verdict == analysis::Verdict::same) {
      ++same;
    } else {
      ++open;
    }
  }
  const char* first = comparison.machines_differ.empty() ? "" : "The machines differ, so the times may. ";
  if (comparison.predicted) first = "Predicted, not measured. ";
  return fmt::format("{}Of {} in both, B is: {}.", first, plural(std::ssize(comparison.cases), "case"),
                     counted({{slower, "slower"},
                              {faster, "faster"},
                              {same, "the same"},
                              {open, comparison.predicted ? "too close to call" : "unresolved"},
                              {missing, "not measured on a side"},
                              {impossible, impossible_on_both}}));
}

Table table_of(const analysis::Reproduction& reproduction) {
  Table table;
  table.columns = {{"change", true}};
  const auto add_side = [&](const std::string& side, double confidence) {
    table.columns.insert(table.columns.end(), {{side}, {side + " " + interval_heading(confidence)}, {side + " n"}});
  };
  add_side("A", reproduction.first_confidence);
  add_side("B", reproduction.second_confidence);
  table.columns.insert(table.columns.end(), {{"A", true}, {"B", true}, {"verdict", true}});
  for (const analysis::ChangeReproduction& row : reproduction.changes) {
    std::vector<Cell> cells{row.name};
    for (const analysis::SideChange* side : {&row.first, &row.second}) {
      cells.push_back(change_words(side->ratio));
      cells.push_back(interval_words(side->low, side->high));
      cells.push_back(side->n > 0 ? std::to_string(side->n) : "");
    }
    for (const analysis::SideChange* side : {&row.first, &row.second}) {
      cells.emplace_back(side->verdict == analysis::Verdict::none ? "no verdict" : analysis::name_of(side->verdict));
    }
    cells.emplace_back(analysis::name_of(row.reproduced));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::string what_n_counts(bool by_runs, const char* side) {
  if (by_runs) return fmt::format("{}: n counts runs, and the interval is between runs.", side);
  return fmt::format("{}: one run. n counts its rounds; how much another run would differ is not estimated.", side);
}

std::vector<std::string> notes_on(const analysis::Reproduction& reproduction) {
  std::vector<std::string> notes{
      "Each change is its case's step time against the baseline of its own side, so machines can be compared whose "
      "times cannot. Reproduced: proven faster on both, slower on both or the same on both. Not reproduced: it moved "
      "on one and is proven the same on the other. Undecided: there is no verdict on one side.",
      what_n_counts(reproduction.first_by_runs, "A"), what_n_counts(reproduction.second_by_runs, "B")};
  for (const std::string& line : reproduction.only_in_one) notes.push_back(fmt::format("Not compared: {}.", line));
  return notes;
}

std::string headline_of(const analysis::Reproduction& reproduction) {
  if (reproduction.changes.empty()) return "No change was tried on both sides: there is nothing to reproduce.";
  std::vector<std::pair<std::size_t, const char*>> counts;
  for (const analysis::Reproduced what : {analysis::Reproduced::yes, analysis::Reproduced::no,
                                          analysis::Reproduced::opposite, analysis::Reproduced::undecided}) {
    const auto n = std::ranges::count(reproduction.changes, what, &analysis::ChangeReproduction::reproduced);
    counts.emplace_back(n, analysis::name_of(what));
  }
  return fmt::format("Of {} tried on both sides: {}.", plural(std::ssize(reproduction.changes), "change"),
                     counted(counts));
}

Section reservations_section(const ComparisonReport& report) {
  Section section{"reservations", "", {}};
  if (!report.incomparable.empty()) {
    section.add(Paragraph{report.anyway ? "These files cannot be compared; --anyway asked for what follows:"
                                        : "These files cannot be compared (--anyway compares them nevertheless):",
                          true});
    section.add(List{report.incomparable, List::Mark::warning});
  }
  if (!report.unreliable.empty()) section.add(List{report.unreliable, List::Mark::warning});
  return section;
}

// What to know before the table is read.
std::vector<std::string> caveats_of(const analysis::Comparison& comparison) {
  std::vector<std::string> caveats;
  for (const std::string& why : comparison.machines_differ)
    caveats.push_back(why +
                      ". Measure again when both machines are alike: with --fail-on, what is slower here is exit "
                      "code 4 (not to be judged), not 2.");
  if (comparison.same_run) caveats.emplace_back("The same run is on both sides: agreement there is no evidence.");
  if (!comparison.baselines_differ.empty()) {
    caveats.push_back("--anyway compares baselines with different settings: " + comparison.baselines_differ + ".");
  }
  return caveats;
}

template <class Sides>
Section section_of(const Sides& sides, std::vector<std::string> caveats, Table table, Table parts) {
  Section section{"comparison", "", {}};
  section.add(Paragraph{headline_of(sides), true});
  section.add(Paragraph{fmt::format("A: {}. B: {}.", join(sides.first, ", "), join(sides.second, ", "))});
  if (!caveats.empty()) section.add(List{std::move(caveats), List::Mark::warning});
  section.add(Numbers{"", std::move(table)});
  section.add(Numbers{"One step, means over ranks, of the baseline and of cases that moved:", std::move(parts)});
  section.add(List{notes_on(sides), List::Mark::none});
  return section;
}

}  // namespace

bool ComparisonReport::nothing_in_common() const {
  return std::ranges::all_of(comparisons, [](const analysis::Comparison& pair) { return pair.comparisons == 0; }) &&
         std::ranges::all_of(reproductions, [](const analysis::Reproduction& pair) { return pair.changes.empty(); });
}

Table comparison_table(const analysis::Comparison& comparison) {
  const Scale scale = scale_of_steps(comparison);
  const bool any_mfu = std::ranges::any_of(
      comparison.cases, [](const analysis::CaseComparison& row) { return row.first.mfu || row.second.mfu; });
  Table table;
  const auto of_both = [&](const std::string& what, int worth) {
    for (const char* side : {"A ", "B "}) table.columns.push_back({.heading = side + what, .worth = worth});
  };
  table.columns = {case_column()};
  of_both("step " + scale.unit, Table::Column::stays);
  table.columns.insert(table.columns.end(),
                       {change_column(), interval_column(comparison.confidence), {.heading = "n", .worth = 50}});
  of_both("tokens/s", 20);
  if (any_mfu) of_both("MFU", 30);
  table.columns.push_back(verdict_column());
  for (const analysis::CaseComparison& row : comparison.cases) {
    const std::array<const analysis::CaseSide*, 2> sides{&row.first, &row.second};
    std::vector<Cell> cells{row.name};
    for (const analysis::CaseSide* side : sides) {
      const bool measured = std::isfinite(side->step_seconds);
      cells.push_back(measured ? scale.print(side->step_seconds) + scatter(sample_of(comparison, *side)) : "");
    }
    cells.push_back(compared_change(row));
    cells.push_back(interval_words(row.low, row.high));
    cells.push_back(row.measured_on_both() ? fmt::format("{}+{}", sample_of(comparison, row.first).size(),
                                                         sample_of(comparison, row.second).size())
                                           : "");
    for (const analysis::CaseSide* side : sides) cells.push_back(Scale{}.print(side->tokens_per_second));
    for (const analysis::CaseSide* side : sides) {
      if (any_mfu) cells.push_back(side->mfu ? percent(*side->mfu) : "");
    }
    cells.push_back(verdict_of(row));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

Document comparison_document(const ComparisonReport& report) {
  Document document;
  document.sections.push_back(reservations_section(report));
  for (const analysis::Comparison& comparison : report.comparisons) {
    document.sections.push_back(
        section_of(comparison, caveats_of(comparison), comparison_table(comparison), parts_table(comparison)));
  }
  for (const analysis::Reproduction& reproduction : report.reproductions) {
    document.sections.push_back(section_of(reproduction, {}, table_of(reproduction), {}));
  }
  document.sections.push_back(differences_section(report.files, report.differences));
  return document;
}

std::string show(const ComparisonReport& report, Format format) {
  if (format == Format::json) return comparison_json(report);
  if (format == Format::csv) fail("compare has no format csv; allowed: text, md, json");
  return write(comparison_document(report), format);
}

}  // namespace harness::report
