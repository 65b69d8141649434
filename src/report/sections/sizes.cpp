#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/summary.h"
#include "report/metrics.h"
#include "report/sections.h"

namespace harness::report {
namespace {

// As nccl-tests prints it, whatever the size: a reader compares numbers by place.
constexpr double microsecond = 1e-6;

std::string microseconds(double seconds) {
  return Scale{"us", microsecond}.print(seconds);
}

std::string gigabytes(const std::optional<double>& bytes_per_s) {
  return bytes_per_s ? fmt::format("{:.4g}", *bytes_per_s / 1e9) : "";
}

using Column = std::pair<Table::Column, std::string (*)(const store::Result&, const analysis::CaseSummary&)>;

std::string size_cell(const store::Result& result, const analysis::CaseSummary& row) {
  const store::ResultPoint* point = result.find_point(row.case_index);
  return point == nullptr ? result.at(row).value : fmt::format("{:.0f}", point->bytes);
}

std::string count_cell(const store::Result& result, const analysis::CaseSummary& row) {
  const store::ResultPoint* point = result.find_point(row.case_index);
  return point == nullptr || point->count == 0 ? "" : std::to_string(point->count);
}

const std::vector<Column>& columns() {
  using R = store::Result;
  using C = analysis::CaseSummary;
  static const std::vector<Column> all{
      {{"size B"}, size_cell},
      {{"count"}, count_cell},
      {{"type"}, [](const R& r, const C& c) { return std::string(r.setting(r.at(c), "precision")); }},
      {{.heading = uses_heading, .words = true},
       [](const R& r, const C& c) {
         const store::ResultPoint* point = r.find_point(c.case_index);
         return point == nullptr ? "" : point->uses;
       }},
      {{"time us"}, [](const R&, const C& c) { return c.rates ? microseconds(c.rates->operation_seconds) : ""; }},
      {{"min us"}, [](const R&, const C& c) { return c.rates ? microseconds(c.rates->least_rank_seconds) : ""; }},
      {{"max us"}, [](const R&, const C& c) { return c.rates ? microseconds(c.rates->most_rank_seconds) : ""; }},
      {{"algbw GB/s"}, [](const R&, const C& c) { return c.rates ? gigabytes(c.rates->algorithm_bytes_per_s) : ""; }},
      {{"busbw GB/s"}, [](const R&, const C& c) { return c.rates ? gigabytes(c.rates->bus_bytes_per_s) : ""; }},
      {{"limit GB/s"}, [](const R&, const C& c) { return c.rates ? gigabytes(c.rates->limit_bytes_per_s) : ""; }},
      {{"errors"},
       [](const R& r, const C& c) {
         return c.status == store::CaseStatus::impossible ? ""
                                                          : std::to_string(analysis::failed_blocks(r, c.case_index));
       }},
  };
  return all;
}

}  // namespace

bool is_listed_by_size(const store::Result& result) {
  return measured_by(result) == Measured::collective && analysis::sweeps_sizes_alone(result);
}

CaseTable size_table(const store::Result& result, const analysis::Summary& summary, Detail detail) {
  CaseTable out;
  const std::vector<const analysis::CaseSummary*> rows = analysis::by_size(result, summary);
  out.table.rows.resize(rows.size());
  for (const auto& [column, text_of] : columns()) {
    std::vector<std::string> texts;
    for (const analysis::CaseSummary* row : rows) texts.push_back(text_of(result, *row));
    if (std::ranges::all_of(texts, &std::string::empty)) continue;
    out.table.columns.push_back(column);
    for (std::size_t i = 0; i < rows.size(); ++i) out.table.rows[i].emplace_back(texts[i]);
  }
  const auto legend = [&](std::string_view heading, std::string text) {
    const auto at = std::ranges::find(out.table.columns, heading, &Table::Column::heading);
    if (at != out.table.columns.end()) at->legend = std::move(text);
  };
  if (const auto average = analysis::average_bus_bandwidth(result, summary))
    legend("busbw GB/s", fmt::format("Average bus bandwidth: {} GB/s.", gigabytes(average)));
  const auto knows_ranks = [](const analysis::CaseSummary* row) {
    return row->rates && std::isfinite(row->rates->most_rank_seconds);
  };
  if (detail == Detail::full && std::ranges::any_of(rows, knows_ranks)) {
    legend("max us",
           "Time: a step ends with its slowest rank. Min and max: the ranks' own medians; max is less than time where "
           "the slowest is not always the same.");
  }
  for (const analysis::CaseSummary* row : rows) {
    if (!row->reason.empty()) out.notes.push_back(fmt::format("{}: {}", row->name, row->reason));
  }
  return out;
}

}  // namespace harness::report
