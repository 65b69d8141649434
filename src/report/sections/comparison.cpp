#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "base/text.h"
#include "base/units.h"
#include "report/compare.h"
#include "report/sections.h"
#include "report/words.h"

namespace harness::report {
namespace {

// "identity, onednn: 2.6.3 (monday.h5); 3.1 (friday.h5)"
std::string difference_line(std::span<const analysis::ComparedFile> files, const analysis::Difference& difference) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < difference.values.size(); ++i) {
    const std::string& value = difference.values[i];
    parts.push_back(fmt::format("{} ({})", value.empty() ? "\"\"" : value, files[i].label));
  }
  return fmt::format("{}, {}: {}", difference.group, difference.name, join(parts, "; "));
}

constexpr std::size_t most_rows = 8;

Section differences_section(const CompareReport& report, bool whole) {
  Section section{"differences", "", {}};
  if (report.differences.empty()) {
    section.add(
        Paragraph{"Nothing else differs between these files: same program, hardware, settings and environment."});
    return section;
  }
  section.add(Paragraph{"What differs besides the times:"});
  const std::size_t all = report.differences.size(), shown = whole ? all : std::min(all, most_rows);
  List lines;
  for (const analysis::Difference& difference : std::span(report.differences).first(shown))
    lines.items.push_back(difference_line(report.files, difference));
  if (shown < all) lines.items.push_back(fmt::format("{} more: -v shows them", all - shown));
  section.add(std::move(lines));
  return section;
}

// A side's value and its interval rest on: runs, or blocks of one run.
const std::vector<double>& sample_of(const analysis::Comparison& comparison, const analysis::MeasuredCase& side) {
  return comparison.between_runs ? side.run_seconds : side.block_seconds;
}

const char* why_not(const analysis::CaseComparison& row) {
  return row.impossible ? "impossible on both sides" : "not measured on a side";
}

Cell verdict_of(const analysis::CaseComparison& row) {
  if (!row.measured_on_both()) return why_not(row);
  return {analysis::name_of(row.judgement), tone_of(row.judgement)};
}

Cell compared_change(const analysis::CaseComparison& row) {
  if (!row.measured_on_both()) return "";
  const bool told = analysis::moved(row.judgement.verdict) || row.judgement.reason == analysis::Reason::predicted;
  return told ? change_words(row.ratio) : "~";
}

Numbers case_rows(const analysis::Comparison& comparison, bool whole) {
  std::vector<double> seconds;
  for (const analysis::CaseComparison& row : comparison.cases) {
    seconds.insert(seconds.end(), {row.first.step_seconds, row.second.step_seconds});
  }
  const Scale scale = scale_of_seconds(seconds);
  std::vector<Table::Column> columns{case_column(),
                                     {.heading = "A step " + scale.unit},
                                     {.heading = "B step " + scale.unit},
                                     change_column(),
                                     interval_column(comparison.confidence),
                                     {.heading = "n", .worth = 50},
                                     {.heading = "A MFU", .worth = 30},
                                     {.heading = "B MFU", .worth = 30},
                                     verdict_column()};
  std::vector<WeighedRow> rows;
  for (const analysis::CaseComparison& row : comparison.cases) {
    const std::array<const analysis::MeasuredCase*, 2> sides{&row.first, &row.second};
    std::vector<Cell> cells{case_cell(row.name)};
    for (const analysis::MeasuredCase* side : sides) cells.push_back(scale.print(side->step_seconds));
    cells.push_back(compared_change(row));
    cells.push_back(interval_words(row.low, row.high));
    cells.push_back(row.measured_on_both() ? fmt::format("{}+{}", sample_of(comparison, row.first).size(),
                                                         sample_of(comparison, row.second).size())
                                           : "");
    for (const analysis::MeasuredCase* side : sides) cells.emplace_back(side->mfu ? percent(*side->mfu) : "");
    cells.push_back(verdict_of(row));
    rows.emplace_back(weight_of(row, row.role), std::move(cells));
  }
  return table_of("", std::move(columns), std::move(rows), whole);
}

std::vector<std::string> how_to_read(const analysis::Comparison& comparison) {
  std::vector<std::string> notes;
  if (comparison.predicted) {
    notes.push_back(fmt::format(
        "Change: time of B against A, per token where batches differ. Predicted, not measured, on at least one side: "
        "no interval and no verdict; {} a change is too close to call.",
        analysis::within_threshold_words(comparison.smallest_effect)));
  } else {
    const bool per_token = std::ranges::any_of(comparison.cases, &analysis::CaseComparison::per_token);
    notes.push_back(
        fmt::format("Change: {} of B against A; ~ where no change is proven. A verdict must clear {}.{}",
                    per_token ? "time per token (batches differ)" : "step time",
                    analysis::threshold_words(comparison.smallest_effect),
                    comparison.comparisons > 1
                        ? fmt::format(" The intervals hold for all {} comparisons together.", comparison.comparisons)
                        : ""));
    notes.emplace_back(
        comparison.between_runs
            ? "n counts runs. The interval is between runs: Welch's t (trimmed, after Yuen, from five runs a side) on "
              "the logarithms of the runs' median step times."
            : "Variation between runs is not estimated: that needs at least three runs on each side. n counts blocks, "
              "and the interval comes from the scatter of blocks within runs. It is a lower bound of the uncertainty: "
              "another allocation of the same machine may differ by more than these verdicts allow for.");
  }
  for (const std::string& line : comparison.not_aligned) notes.push_back(fmt::format("Not compared: {}.", line));
  return notes;
}

// The verdict; of a prediction, which has none, the way it points.
std::string_view outcome_of(const analysis::CaseComparison& row) {
  using enum analysis::Verdict;
  if (!row.measured_on_both()) return why_not(row);
  if (row.judgement.reason == analysis::Reason::too_close_to_call) return too_close;
  if (row.judgement.reason == analysis::Reason::predicted) return analysis::name_of(row.ratio > 1 ? slower : faster);
  const bool decided = analysis::moved(row.judgement.verdict) || row.judgement.verdict == same;
  return analysis::name_of(decided ? row.judgement.verdict : unresolved);
}

std::string headline_of(const analysis::Comparison& comparison) {
  if (comparison.cases.empty()) {
    return "No case of one side is a case of the other: there is nothing to compare. --anyway compares baseline with "
           "baseline.";
  }
  std::vector<std::pair<std::size_t, const char*>> counts;
  for (const char* outcome :
       {"slower", "faster", "same", "unresolved", too_close, "not measured on a side", "impossible on both sides"})
    counts.emplace_back(std::ranges::count(comparison.cases, std::string_view(outcome), outcome_of), outcome);
  return fmt::format("{}Of {} in both, B is: {}.", comparison.predicted ? "Predicted, not measured. " : "",
                     plural(std::ssize(comparison.cases), "case"), counted(counts));
}

Section reservations_section(const CompareReport& report) {
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

}  // namespace

double weight_of(const analysis::Change& change, store::CaseRole role) {
  if (role == store::CaseRole::baseline) return std::numeric_limits<double>::infinity();
  const bool told = analysis::moved(change.judgement.verdict) || change.judgement.reason == analysis::Reason::predicted;
  return told ? std::abs(std::log(change.ratio)) : 0;
}

Numbers table_of(std::string caption, std::vector<Table::Column> columns, std::vector<WeighedRow> rows, bool whole) {
  std::vector<std::size_t> kept(rows.size());
  std::iota(kept.begin(), kept.end(), std::size_t{0});
  if (!whole && kept.size() > most_rows) {
    std::ranges::stable_sort(kept, std::greater<>(), [&](std::size_t i) { return rows[i].first; });
    kept.resize(most_rows);
    std::ranges::sort(kept);
  }
  Numbers numbers{std::move(caption), {std::move(columns), {}}};
  for (const std::size_t i : kept) numbers.table.rows.push_back(std::move(rows[i].second));
  numbers.table.remove_empty_columns();
  if (const std::size_t more = rows.size() - numbers.table.rows.size(); more > 0) {
    const std::string words = fmt::format("{} that moved less or not: -v shows them.", plural(more, "more row"));
    numbers.caption += numbers.caption.empty() ? "The rows that moved most; " + words : " " + words;
  }
  return numbers;
}

Answer text_of(const analysis::Comparison& comparison, const CompareReport&, bool whole) {
  std::vector<std::string> caveats;
  if (comparison.same_run) caveats.emplace_back("The same run is on both sides: agreement there is no evidence.");
  if (!comparison.baselines_differ.empty())
    caveats.push_back("--anyway compares baselines with different settings: " + comparison.baselines_differ + ".");
  Answer answer{.how_to_read = how_to_read(comparison)};
  answer.said.add(Paragraph{headline_of(comparison), true});
  answer.said.add(Paragraph{fmt::format("A: {}. B: {}.", join(comparison.first, ", "), join(comparison.second, ", "))});
  if (!caveats.empty()) answer.said.add(List{std::move(caveats), List::Mark::warning});
  answer.said.add(case_rows(comparison, whole));
  return answer;
}

bool CompareReport::nothing_in_common() const {
  if (const auto* sides = std::get_if<analysis::Comparison>(&answer)) return sides->comparisons == 0;
  if (const auto* effects = std::get_if<analysis::Reproduction>(&answer)) return effects->changes.empty();
  return std::holds_alternative<std::monostate>(answer);
}

Document compare_document(const CompareReport& report, bool whole) {
  Document document;
  document.sections.push_back(reservations_section(report));
  Answer text = std::visit([&](const auto& answer) { return text_of(answer, report, whole); }, report.answer);
  if (!text.said.pieces.empty()) document.sections.push_back(std::move(text.said));
  if (!report.files.empty()) document.sections.push_back(differences_section(report, whole));
  document.sections.push_back({"how-to-read", "", {List{std::move(text.how_to_read), List::Mark::none}}});
  return document;
}

}  // namespace harness::report
