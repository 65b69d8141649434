#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/runs.h"
#include "base/text.h"
#include "report/context.h"
#include "report/effect_words.h"
#include "report/pooled.h"
#include "report/sections.h"

namespace harness::report {
namespace {

// A column of medians; none where no case has a value of it.
void add_metric(const PooledReport& report, const Metric& metric, Table& table) {
  const store::Result& first = *report.files[0].result;
  const auto shown = [&](const store::Result& result, const analysis::CaseSummary& row) {
    return table_value(metric, result, row);
  };
  std::vector<std::optional<double>> medians;
  std::vector<double> known;
  for (const analysis::PooledCase& row : report.pool.cases) {
    const auto median = medians.emplace_back(analysis::median_over_runs(row, report.files, shown));
    if (median) known.push_back(*median);
  }
  if (known.empty()) return;
  const MetricPrinter printer(metric, known);
  table.columns.push_back(printer.column(measured_by(first)));
  for (std::size_t i = 0; i < medians.size(); ++i) {
    table.rows[i].push_back(medians[i] ? printer.number(*medians[i]) : "");
  }
}

void add(const PooledReport& report, const Table::Column& column, Table& table, const auto& cell) {
  table.columns.push_back(column);
  for (std::size_t i = 0; i < table.rows.size(); ++i) table.rows[i].push_back(cell(report.pool.cases[i]));
}

// "3", or "2 of 3" where not all count.
std::string runs_of(const PooledReport& report, const analysis::PooledCase& row) {
  const bool all = row.n == static_cast<int>(report.files.size());
  return all ? std::to_string(row.n) : fmt::format("{} of {}", row.n, report.files.size());
}

struct TableWithNotes {
  Table table;
  std::vector<std::string> notes;  // that its verdicts point to as [1], [2] …
};

TableWithNotes table_of(const PooledReport& report) {
  TableWithNotes out;
  Table& table = out.table;
  table.rows.resize(report.pool.cases.size());
  add(report, case_column(), table, [](const analysis::PooledCase& row) { return row.name; });
  for (const Metric& metric : pooled_metrics(*report.files[0].result)) {
    if (!metric.column.heading.empty()) add_metric(report, metric, table);
  }
  add(report, change_column(), table, [](const analysis::PooledCase& row) { return change_cell(row.ratio); });
  const bool any_interval =
      std::ranges::any_of(report.pool.cases, [](const analysis::PooledCase& row) { return std::isfinite(row.low); });
  if (any_interval) {
    add(report, interval_column(report.pool.confidence), table,
        [](const analysis::PooledCase& row) { return interval_words(row.low, row.high); });
  }
  add(report, {.heading = "runs", .worth = 60}, table,
      [&](const analysis::PooledCase& row) { return runs_of(report, row); });
  add(report, verdict_column(), table, [&](const analysis::PooledCase& row) {
    const std::vector<std::string> remarks = pooled_remarks(report, row);
    Cell verdict(pooled_verdict(row), tone_of(row.judgement));
    if (remarks.empty()) return verdict;
    out.notes.push_back(fmt::format("{}: {}", row.name, join(remarks, "; ")));
    verdict.text += fmt::format(" [{}]", out.notes.size());
    return verdict;
  });
  return out;
}

// A column per run, numbered as in the list of runs.
Table table_of_runs(const PooledReport& report) {
  Table table;
  table.columns = {{"case", true}};
  for (std::size_t i = 0; i < report.files.size(); ++i) table.columns.push_back({fmt::format("run {}", i + 1)});
  for (const analysis::PooledCase& row : report.pool.cases) {
    if (store::is_reference(row.role)) continue;
    std::vector<Cell> cells(1 + report.files.size());
    cells[0] = row.name;
    for (const analysis::RunOfCase& run : row.runs) cells[run.file + 1] = change_words(run.ratio);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::string runs_line(const PooledReport& report) {
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < report.files.size(); ++i) {
    const store::Result& result = *report.files[i].result;
    runs.push_back(
        fmt::format("{} is {} ({}, {})", i + 1, report.files[i].label, result.created, plural(result.rounds, "round")));
  }
  return "Runs: " + join(runs, "; ") + ".";
}

std::string change_line(const PooledReport& report) {
  std::string line = fmt::format(
      "Change: {} against the baseline of the same run, the geometric mean over the runs; the other columns are "
      "medians over the runs.",
      what_changes(*report.files[0].result));
  if (report.files.size() < analysis::runs_for_an_interval) {
    return line + " Two runs cannot tell how much runs differ: a third run is needed for an interval.";
  }
  line += " The intervals are between runs (Student's t)";
  if (report.pool.comparisons > 1) {
    line += fmt::format(" and hold for all {} comparisons together", report.pool.comparisons);
  }
  return line + fmt::format("; a verdict must clear {}.", analysis::threshold_words(report.pool.smallest_effect));
}

}  // namespace

Document pooled_document(const PooledReport& report) {
  Document document;
  document.headline = pooled_headline(report);
  TableWithNotes cases = table_of(report);
  Section section{"pooled", "", {}};
  section.add(List{report.unreliable, List::Mark::warning});
  section.add(Numbers{"", std::move(cases.table)});
  section.add(List{std::move(cases.notes), List::Mark::number});
  section.add(List{{backend_line(*report.files[0].result), runs_line(report), change_line(report)}, List::Mark::none});
  section.add(Numbers{"What each run found against its own baseline:", table_of_runs(report)});
  document.sections.push_back(std::move(section));
  document.sections.push_back(differences_section(report.files, report.differences));
  return document;
}

}  // namespace harness::report
