#include <fmt/format.h>

#include <algorithm>

#include "analysis/estimator.h"
#include "base/text.h"
#include "report/sections.h"

namespace harness::report {
namespace {

Scale scale_for(Unit unit, std::span<const double> values) {
  if (unit == Unit::seconds) return scale_of_seconds(values);
  if (unit == Unit::flops) return scale_of_flops(values);
  if (unit == Unit::bytes) return scale_of_bytes(values);
  if (unit == Unit::gigabytes_s) return gigabytes_per_s;
  return unit == Unit::hertz ? Scale{"MHz", 1e6} : Scale{};
}

std::string printed(double value, const Metric& metric, const Scale& scale) {
  switch (metric.unit) {
    case Unit::share:
      return percent(value) + (metric.key == "mfu" && value > analysis::beyond_doubt ? " !" : "");
    case Unit::hertz:
    case Unit::watts:
    case Unit::count:
      return fmt::format("{:.0f}", value / scale.factor);
    default:
      return scale.print(value);
  }
}

// A column in one unit, with empty cells for values that were not measured.
void add_metric(const Metric& metric, std::string legend, const store::Result& result, const analysis::Summary& summary,
                Table& table) {
  std::vector<std::optional<double>> known;
  std::vector<double> values;
  for (const analysis::CaseSummary& row : summary.cases) {
    known.push_back(row.blocks > 0 ? metric.value(result, row) : std::nullopt);
    values.push_back(known.back().value_or(0));  // 0 sets no unit
    // Only a share can be 0; for all other metrics 0 means "unknown".
    if (values.back() == 0 && metric.unit != Unit::share) known.back().reset();
  }
  const Scale scale = scale_for(metric.unit, values);
  std::string heading = fmt::format(fmt::runtime(metric.heading), scale.unit);
  if (result.ranks_are_gpus() && heading.ends_with("/rank")) heading.replace(heading.size() - 4, 4, "GPU");
  table.add({.heading = std::move(heading), .worth = metric.worth, .legend = std::move(legend)}, known,
            [&](const std::optional<double>& value) { return value ? printed(*value, metric, scale) : ""; });
}

// Fewer rounds do not determine the scatter, and so not the number of rounds needed.
constexpr int min_rounds_for_estimate = 5;

// The number of rounds of a verdict if not all, and the number that would settle it: "12/20 ~43".
std::string rounds_of(const analysis::CaseSummary& row, int planned) {
  std::vector<std::string> words;
  if (row.effect && row.effect->rounds < planned) words.push_back(fmt::format("{}/{}", row.effect->rounds, planned));
  const bool is_open = row.effect && row.judgement.verdict == analysis::Verdict::unresolved;
  if (is_open && row.effect->rounds_needed > 0 && row.effect->rounds >= min_rounds_for_estimate) {
    const bool more = row.effect->rounds_needed >= analysis::max_rounds;
    words.push_back(fmt::format("~{}{}", std::min(row.effect->rounds_needed, analysis::max_rounds), more ? "+" : ""));
  }
  return join(words, " ");
}

std::string brief_name(const store::Result& result, const analysis::CaseSummary& row) {
  return short_name(label_of(result, row));
}

// If precisions have different peaks, a case may be faster with a lower MFU.
std::string legend_of_mfu(const store::Result& result, const analysis::Summary& summary) {
  constexpr std::size_t max_named = 3;
  const analysis::CaseSummary* baseline = summary.baseline();
  const auto has_mfu = [](const analysis::CaseSummary& row) { return row.mfu.has_value(); };
  if (baseline == nullptr || !has_mfu(*baseline)) return "";
  std::vector<std::string> names;
  for (const analysis::CaseSummary& row : summary.cases) {
    const bool differs = result.at(row).peak_flops_per_rank != result.at(*baseline).peak_flops_per_rank;
    if (has_mfu(row) && differs) names.push_back(brief_name(result, row));
  }
  if (names.empty()) return "";
  return fmt::format("Another peak than the baseline's: {}; compare step times, not MFU.",
                     join_first(names, max_named));
}

}  // namespace

std::vector<std::string> case_notes(const analysis::CaseSummary& row, const analysis::Summary& summary) {
  std::vector<std::string> notes;
  if (!row.reason.empty()) notes.push_back(row.reason);
  for (const analysis::LevelFindings& level : summary.levels) {
    for (const analysis::LevelFindings::SetAside& aside : level.set_aside) {
      if (aside.case_index != row.case_index) continue;
      const bool with_control = aside.blocks > row.blocks;  // the baseline's copy is in its group
      notes.push_back(fmt::format("without {} of its {}{}, too far off its others", aside.set_aside,
                                  plural(aside.blocks, "block"), with_control ? " (the control's included)" : ""));
    }
  }
  return notes;
}

Cell case_cell(const std::string& name) {
  return {name, Tone::plain, short_name(name)};
}

Cell interval_cell(double low, double high) {
  Cell cell = interval_words(low, high);
  const std::size_t end = cell.text.rfind(" %]"), first = cell.text.find(" %");
  if (end == std::string::npos) return cell;
  cell.brief = cell.text.substr(0, end) + "] %";
  if (first < end) cell.brief.erase(first, 2);
  return cell;
}

// Verdicts rest on it, so it is the last of the optional columns to be dropped.
Table::Column interval_column(double confidence) {
  return {.heading = interval_heading(confidence), .worth = essential + 20};
}

Table case_table(const store::Result& result, const analysis::Summary& summary) {
  const bool sizes_alone = measured_by(result) == Measured::collective && analysis::sweeps_sizes_alone(result);
  if (sizes_alone || analysis::is_grid(result)) return table_by_size(result, summary);
  Table table;
  const auto add = [&](Table::Column column, const auto& cell_of) {
    table.add(std::move(column), summary.cases, cell_of);
  };
  add(case_column,
      [&](const analysis::CaseSummary& row) { return Cell(row.name, Tone::plain, brief_name(result, row)); });
  add({.heading = uses_heading, .words = true, .worth = 9}, [&](const analysis::CaseSummary& row) {
    return row.role == store::CaseRole::control ? "" : uses_of(result, row);
  });
  const bool ranks_differ = std::ranges::any_of(result.cases, [&](const store::ResultCase& of) {
    return of.status != store::CaseStatus::impossible && of.ranks != result.cases[0].ranks;
  });
  if (ranks_differ) {
    add({.heading = "ranks", .worth = 30},
        [&](const analysis::CaseSummary& row) { return row.blocks > 0 ? std::to_string(result.at(row).ranks) : ""; });
  }
  for (const Metric& metric : case_metrics()) {
    if (metric.heading.empty()) continue;
    add_metric(metric, metric.key == "mfu" ? legend_of_mfu(result, summary) : "", result, summary, table);
  }
  if (!analysis::sweeps_sizes_alone(result)) {
    Table::Column change = change_column;
    if (!per_what(result).empty()) change.heading += measured_by(result) == Measured::collective ? "/byte" : "/FLOP";
    add(change, [](const analysis::CaseSummary& row) { return change_of(row.effect); });
    add(interval_column(result.confidence), [](const analysis::CaseSummary& row) {
      return row.effect ? interval_cell(row.effect->low, row.effect->high) : Cell();
    });
    add({.heading = "rounds",
         .worth = 43,
         .legend =
             "n/N: change and verdict rest on n of the N rounds. ~N: about N rounds would settle it, if its effect "
             "and scatter stay as they are."},
        [&](const analysis::CaseSummary& row) { return rounds_of(row, result.rounds); });
  }
  Table::Column judged = verdict_column;
  if (summary.predicted) judged.heading = "prediction";
  add(judged, [&](const analysis::CaseSummary& row) {
    if (row.role == store::CaseRole::point && row.judgement.reason == analysis::Reason::baseline) return Cell();
    Cell verdict(analysis::name_of(row.judgement), tone_of(row.judgement));
    for (const std::string& note : case_notes(row, summary)) verdict.text += " " + table.note(note);
    return verdict;
  });
  table.remove_empty_columns();
  return table;
}

}  // namespace harness::report
