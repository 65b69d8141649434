#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "report/context.h"
#include "report/effect_words.h"
#include "report/metrics.h"
#include "report/sections.h"

namespace harness::report {
namespace {

// A column is there only if some row has something to say in it.
class CaseTableBuilder {
 public:
  explicit CaseTableBuilder(const store::Result& result, const analysis::Summary& summary)
      : result_(result), summary_(summary) {
    table_.rows.resize(summary.cases.size());
  }

  void add(const std::string& heading, bool words,
           const std::function<std::string(const analysis::CaseSummary&)>& cell) {
    std::vector<std::string> cells;
    for (const analysis::CaseSummary& row : summary_.cases) cells.push_back(cell(row));
    if (std::ranges::all_of(cells, [](const std::string& text) { return text.empty(); })) return;
    table_.columns.push_back({heading, words});
    for (std::size_t i = 0; i < cells.size(); ++i) table_.rows[i].push_back(cells[i]);
  }
  void add(const Metric& metric) {
    std::vector<double> values;
    for (const analysis::CaseSummary& row : summary_.cases) {
      if (const auto value = table_value(metric, result_, row)) values.push_back(*value);
    }
    if (values.empty()) return;
    const MetricPrinter printer(metric, values);
    add(printer.heading(measured_by(result_)), false, [&](const analysis::CaseSummary& row) {
      const auto value = table_value(metric, result_, row);
      return value ? printer.number(*value) : "";
    });
  }
  Table take() { return std::move(table_); }

 private:
  const store::Result& result_;
  const analysis::Summary& summary_;
  Table table_;
};

bool ranks_differ(const store::Result& result) {
  return std::ranges::any_of(result.cases, [&](const store::ResultCase& result_case) {
    return result_case.status != store::CaseStatus::impossible && result_case.ranks != result.cases[0].ranks;
  });
}

}  // namespace

CaseTable case_table(const store::Result& result, const analysis::Summary& summary) {
  CaseTable out;
  CaseTableBuilder build(result, summary);
  build.add("case", true, [](const analysis::CaseSummary& row) { return row.name; });
  if (ranks_differ(result)) {
    build.add("ranks", false, [&](const analysis::CaseSummary& row) {
      return row.blocks > 0 ? std::to_string(result.at(row).ranks) : "";
    });
  }
  for (const Metric& metric : case_metrics()) {
    if (!metric.heading.empty()) build.add(metric);
  }
  build.add("change", false, change_of);
  build.add(interval_heading(), false, interval_of);
  build.add("verdict", true, [&](const analysis::CaseSummary& row) {
    std::string verdict = analysis::name_of(row.judgement);
    if (row.effect && row.effect->rounds < result.rounds) {
      verdict += fmt::format(" ({}/{})", row.effect->rounds, result.rounds);
    }
    if (row.reason.empty()) return verdict;
    out.notes.push_back(fmt::format("{}: {}", row.name, row.reason));
    return fmt::format("{} [{}]", verdict, out.notes.size());
  });
  out.table = build.take();
  return out;
}

Section overview_section(const store::Result& result, const analysis::Summary& summary) {
  Section section{"overview", "", {}};
  section.pieces.push_back(List{context(result, summary), List::Mark::none});
  CaseTable cases = case_table(result, summary);
  section.pieces.push_back(Numbers{"", std::move(cases.table)});
  section.pieces.push_back(List{std::move(cases.notes), List::Mark::number});
  section.pieces.push_back(List{summary.warnings, List::Mark::warning});
  return section;
}

}  // namespace harness::report
