#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "analysis/estimator.h"
#include "analysis/summary.h"
#include "base/text.h"
#include "report/metrics.h"
#include "report/sections.h"
#include "report/words.h"

namespace harness::report {
namespace {

// A column is there only if some row has something to say in it.
class CaseTableBuilder {
 public:
  explicit CaseTableBuilder(const store::Result& result, const analysis::Summary& summary)
      : result_(result), summary_(summary) {
    table_.rows.resize(summary.cases.size());
  }

  void add(const Table::Column& column, const std::function<Cell(const analysis::CaseSummary&)>& cell_of) {
    table_.columns.push_back(column);
    for (std::size_t i = 0; i < table_.rows.size(); ++i) table_.rows[i].push_back(cell_of(summary_.cases[i]));
  }
  void add(const Metric& metric, const std::string& legend) {
    std::vector<double> values;
    for (const analysis::CaseSummary& row : summary_.cases) {
      if (const auto value = table_value(metric, result_, row)) values.push_back(*value);
    }
    const MetricPrinter printer(metric, values);
    Table::Column column = printer.column(measured_by(result_));
    column.legend = legend;
    add(column, [&](const analysis::CaseSummary& row) {
      const auto value = table_value(metric, result_, row);
      return value ? printer.number(*value) : "";
    });
  }
  Table take() {
    table_.remove_empty_columns();
    return std::move(table_);
  }

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

// The amounts by which a reader would compare two rows: of what the change is the change, as far as columns show it.
double rate_of(const analysis::CaseSummary& row) {
  if (row.rates && row.rates->bus_bytes_per_s) return *row.rates->bus_bytes_per_s;
  return row.tokens_per_second > 0 ? row.tokens_per_second : row.flops_per_rank;
}

// "micro_batch_size=4 (+4.5 %, medians -10.3 %)" where the change and the two medians beside it look like a
// contradiction: of different signs as printed, or further apart than the smallest effect that matters. Else "".
std::string contradiction(const store::Result& result, const analysis::CaseSummary& row,
                          const analysis::CaseSummary& reference) {
  if (!row.effect || !(rate_of(row) > 0) || !(rate_of(reference) > 0)) return "";
  const double ratio = row.effect->ratio, of_medians = rate_of(reference) / rate_of(row);
  constexpr double printed = 0.0005;
  const bool opposite =
      (ratio - 1) * (of_medians - 1) < 0 && std::min(std::abs(ratio - 1), std::abs(of_medians - 1)) > printed;
  if (!opposite && std::abs(std::log(ratio / of_medians)) <= std::log1p(result.smallest_effect)) return "";
  return fmt::format("{} ({}, medians {})", label_of(result, row), change_words(ratio), change_words(of_medians));
}

std::string legend_of_change(const store::Result& result, const analysis::Summary& summary, Detail detail) {
  constexpr std::size_t max_named = 6;
  if (summary.baseline() == nullptr) return "";
  std::vector<std::string> named;
  for (const analysis::CaseSummary& row : summary.cases) {
    const analysis::CaseSummary& reference = summary.case_at(result.at(row).reference);
    if (std::string words = contradiction(result, row, reference); !words.empty()) named.push_back(std::move(words));
  }
  if (named.empty()) return "";
  if (detail == Detail::brief) return "The change compares blocks close in time, and counts; medians mix all blocks.";
  return fmt::format(
      "The change compares blocks that ran close together; the other columns are medians over all blocks. The change "
      "counts. It differs from the medians in sign, or by more than {:.3g} %, in: {}.",
      100 * result.smallest_effect, join_first(named, max_named));
}

// From a few rounds no scatter can be told, so no number of rounds either.
constexpr int min_rounds_for_estimate = 5;

bool has_estimate(const analysis::CaseSummary& row) {
  return row.effect && row.judgement.verdict == analysis::Verdict::unresolved && row.effect->rounds_needed > 0 &&
         row.effect->rounds >= min_rounds_for_estimate;
}

// "/byte" or "/FLOP" where the cases of single operations do different amounts of work; else "".
std::string unit_of_change(const store::Result& result) {
  if (per_what(result).empty()) return "";
  return measured_by(result) == Measured::collective ? "/byte" : "/FLOP";
}

// Whether the verdict on a case is on its work per time: another size is not slower because it takes longer.
bool counts_per_work(const store::Result& result, const analysis::CaseSummary& row) {
  if (!analysis::moved(row.judgement.verdict) || unit_of_change(result).empty()) return false;
  const auto work_of = [&](std::int32_t case_index) {
    const store::ResultPoint* point = result.find_point(case_index);
    const double flop = result.case_at(case_index).model_flop_per_step;
    return point == nullptr ? std::pair(0.0, flop) : std::pair(point->bytes * point->bus_factor, flop);
  };
  return work_of(row.case_index) != work_of(result.at(row).reference);
}

bool has_fewer_rounds(const analysis::CaseSummary& row, int planned) {
  return row.effect && row.effect->rounds < planned;
}

// The number of rounds behind a verdict, if not all, and how many would settle it: "12/20 ~43".
std::string rounds_of(const analysis::CaseSummary& row, int planned) {
  std::vector<std::string> words;
  if (has_fewer_rounds(row, planned)) words.push_back(fmt::format("{}/{}", row.effect->rounds, planned));
  if (has_estimate(row)) {
    const int needed = row.effect->rounds_needed;
    words.push_back(needed < analysis::max_rounds ? fmt::format("~{}", needed)
                                                  : fmt::format("~{}+", analysis::max_rounds));
  }
  return join(words, " ");
}

Table::Column rounds_column(const store::Result& result, const analysis::Summary& summary) {
  Table::Column column{.heading = "rounds", .worth = 43};
  const auto few = std::ranges::find_if(
      summary.cases, [&](const analysis::CaseSummary& row) { return has_fewer_rounds(row, result.rounds); });
  if (few != summary.cases.end()) {
    column.legend =
        fmt::format("{0}/{1}: change and verdict rest on {0} of the {1} rounds.", few->effect->rounds, result.rounds);
  }
  if (std::ranges::any_of(summary.cases, has_estimate)) {
    column.legend += fmt::format("{}~N: about N rounds would settle it, if its effect and scatter stay as they are.",
                                 column.legend.empty() ? "" : " ");
  }
  return column;
}

// Interval ends share their unit where space is short: "[-12.9, -11.1] %".
Cell interval_cell(const std::optional<analysis::Effect>& effect) {
  Cell cell = interval_of(effect);
  const std::size_t end = cell.text.rfind(" %]"), first = cell.text.find(" %");
  if (end == std::string::npos) return cell;
  cell.brief = cell.text.substr(0, end) + "] %";
  if (first < end) cell.brief.erase(first, 2);
  return cell;
}

// Short names where they tell the cases apart.
std::vector<std::string> short_names(const store::Result& result, const analysis::Summary& summary) {
  std::vector<std::string> names;
  for (const analysis::CaseSummary& row : summary.cases) {
    const std::string label = label_of(result, row);
    names.push_back(label == row.name ? short_name(row.name) : label);
  }
  std::vector<std::string> unique = names;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (std::ranges::count(names, names[i]) > 1) unique[i] = summary.cases[i].name;
  }
  return unique;
}

// Where precisions have peaks of their own, a case may be quicker with a lower MFU.
std::string legend_of_mfu(const store::Result& result, const analysis::Summary& summary, Detail detail) {
  const analysis::CaseSummary* baseline = summary.baseline();
  const auto has_mfu = [](const analysis::CaseSummary& row) { return row.mfu.value_or(0) > 0; };  // 0: of no FLOP
  if (baseline == nullptr || !has_mfu(*baseline)) return "";
  const double peak = result.at(*baseline).peak_flops_per_rank;
  std::vector<double> peaks{peak};
  std::vector<std::string> names;
  const auto differs = [&](const analysis::CaseSummary& row) {
    return has_mfu(row) && result.at(row).peak_flops_per_rank != peak;
  };
  for (const analysis::CaseSummary& row : summary.cases) {
    if (differs(row)) peaks.push_back(result.at(row).peak_flops_per_rank);
  }
  const Scale scale = scale_of_flops(peaks);
  for (const analysis::CaseSummary& row : summary.cases) {
    if (differs(row)) {
      names.push_back(fmt::format("{} has {} {}", label_of(result, row),
                                  scale.print(result.at(row).peak_flops_per_rank), scale.unit));
    }
  }
  constexpr std::size_t max_named = 3;
  if (names.empty()) return "";
  if (detail == Detail::brief) return "MFU is of each precision's own peak: across precisions compare step times.";
  return fmt::format(
      "MFU is a share of the peak of a case's own precision: {}, the baseline {} {}. Across precisions "
      "compare tokens/s.",
      join_first(names, max_named), scale.print(peak), scale.unit);
}

}  // namespace

std::vector<std::string> case_notes(const analysis::CaseSummary& row, const analysis::Summary& summary) {
  std::vector<std::string> notes;
  if (!row.reason.empty()) notes.push_back(row.reason);
  for (const analysis::LevelFindings& level : summary.levels) {
    for (const analysis::LevelFindings::SetAside& aside : level.set_aside) {
      if (aside.case_index != row.case_index) continue;
      notes.push_back(fmt::format("{} of its {} count nothing, too far off its others", aside.set_aside,
                                  plural(aside.blocks, "block")));
    }
  }
  return notes;
}

Cell case_cell(const std::string& name) {
  Cell cell(name);
  cell.brief = short_name(name);
  return cell;
}

Table::Column case_column() {
  return {.heading = "case", .words = true, .id = Table::Column::Id::name};
}
Table::Column change_column(const std::string& unit) {
  return {.heading = "change" + unit, .id = Table::Column::Id::change};
}
// A verdict rests on it: of what may go it goes last.
Table::Column interval_column(double confidence) {
  return {.heading = interval_heading(confidence), .worth = essential + 20};
}
Table::Column verdict_column() {
  return {.heading = "verdict", .words = true, .id = Table::Column::Id::verdict};
}

CaseTable case_table(const store::Result& result, const analysis::Summary& summary, Detail detail) {
  if (is_listed_by_size(result)) return size_table(result, summary);
  if (analysis::is_grid(result)) return grid_table(result, summary);
  CaseTable out;
  CaseTableBuilder build(result, summary);
  const std::vector<std::string> brief = short_names(result, summary);
  build.add(case_column(), [&](const analysis::CaseSummary& row) {
    Cell name(row.name);
    name.brief = brief[static_cast<std::size_t>(row.case_index)];
    return name;
  });
  const Table::Column use{.heading = uses_heading, .words = true, .id = Table::Column::Id::use};
  build.add(use, [&](const analysis::CaseSummary& row) {
    const store::ResultPoint* point = result.find_point(row.case_index);
    return point == nullptr || row.role == store::CaseRole::control ? "" : point->uses;
  });
  if (ranks_differ(result)) {
    build.add({.heading = "ranks", .worth = 30}, [&](const analysis::CaseSummary& row) {
      return row.blocks > 0 ? std::to_string(result.at(row).ranks) : "";
    });
  }
  for (const Metric& metric : case_metrics()) {
    if (!metric.column.heading.empty())
      build.add(metric, metric.key == "mfu" ? legend_of_mfu(result, summary, detail) : "");
  }
  const bool sizes_alone = analysis::sweeps_sizes_alone(result);
  if (!sizes_alone) {
    Table::Column change = change_column(unit_of_change(result));
    change.legend = legend_of_change(result, summary, detail);
    build.add(change,
              [](const analysis::CaseSummary& row) { return row.effect ? change_cell(row.effect->ratio) : Cell(); });
    build.add(interval_column(result.confidence),
              [](const analysis::CaseSummary& row) { return interval_cell(row.effect); });
    build.add(rounds_column(result, summary),
              [&](const analysis::CaseSummary& row) { return rounds_of(row, result.rounds); });
  }
  Table::Column judged = verdict_column();
  if (summary.predicted) judged.heading = "prediction";
  build.add(judged, [&](const analysis::CaseSummary& row) {
    if (row.role == store::CaseRole::point && row.judgement.reason == analysis::Reason::baseline) return Cell();
    const std::string per =
        counts_per_work(result, row) ? fmt::format(" per {}", unit_of_change(result).substr(1)) : "";
    Cell verdict(analysis::name_of(row.judgement) + per, tone_of(row.judgement));
    for (const std::string& note : case_notes(row, summary)) {
      out.notes.push_back(fmt::format("{}: {}", brief[static_cast<std::size_t>(row.case_index)], note));
      verdict.text += fmt::format(" [{}]", out.notes.size());
    }
    return verdict;
  });
  out.table = build.take();
  return out;
}

Section overview_section(const store::Result& result, const analysis::Summary& summary, Detail detail) {
  Section section{"overview", "", {}};
  CaseTable cases = case_table(result, summary, detail);
  section.add(Numbers{"", std::move(cases.table)});
  section.add(List{std::move(cases.notes), List::Mark::number});
  section.add(List{summary.warnings, List::Mark::warning});
  section.add(
      List{detail == Detail::full ? context(result, summary) : short_context(result, summary), List::Mark::none});
  return section;
}

}  // namespace harness::report
