#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/statistics.h"
#include "base/text.h"
#include "report/effect_words.h"
#include "report/scale.h"
#include "report/sections.h"
#include "report/show_comparison.h"

namespace harness::report {
namespace {

std::string between(const analysis::History& history, const analysis::CaseHistory& row) {
  // The last run before the change that measured the case.
  std::size_t before = row.largest->run;
  while (before > 0 && !(row.seconds[--before] > 0)) {
  }
  return fmt::format("{} and {}", history.labels[before], history.labels[row.largest->run]);
}

bool is_proven(const analysis::CaseHistory& row) {
  return analysis::moved(row.verdict) || row.verdict == analysis::Verdict::same;
}

std::string headline_of(const analysis::History& history) {
  if (history.labels.size() < analysis::min_history_runs) {
    return fmt::format("{}: too few for a verdict, which needs {} that count.",
                       plural(std::ssize(history.labels), "run"), analysis::min_history_runs);
  }
  std::vector<std::string> moved;
  for (const analysis::CaseHistory& row : history.cases) {
    if (analysis::moved(row.verdict)) {
      moved.push_back(
          fmt::format("{} {} between {}", row.name, change_words(row.largest->ratio), between(history, row)));
    }
  }
  if (moved.empty()) return fmt::format("No change is proven over {} runs.", history.labels.size());
  return fmt::format("Over {} runs the step time changed: {}.", history.labels.size(), join(moved, "; "));
}

Scale scale_of(const analysis::History& history) {
  std::vector<double> seconds;
  for (const analysis::CaseHistory& row : history.cases) {
    for (const double value : row.seconds) {
      if (value > 0) seconds.push_back(value);
    }
  }
  return scale_of_seconds(seconds);
}

Table table_of_cases(const analysis::History& history) {
  Table table;
  table.columns = {case_column(),
                   {.heading = "no.", .worth = 50},
                   {.heading = "runs", .worth = 60},
                   change_column(),
                   {"between", true},
                   {"p"},
                   verdict_column()};
  for (std::size_t i = 0; i < history.cases.size(); ++i) {
    const analysis::CaseHistory& row = history.cases[i];
    const auto runs = std::ranges::count_if(row.seconds, [](double value) { return value > 0; });
    std::vector<Cell> cells{row.name, fmt::format("[{}]", i + 1), std::to_string(runs)};
    if (row.largest) {
      cells.insert(cells.end(), {is_proven(row) ? change_cell(row.largest->ratio) : "~", between(history, row),
                                 fmt::format("{:.4f}", row.largest->p)});
    } else {
      cells.resize(cells.size() + 3);
    }
    const char* verdict = analysis::name_of(row.verdict);
    if (row.verdict == analysis::Verdict::unresolved) verdict = "no change proven";
    if (row.verdict == analysis::Verdict::none) verdict = "too few runs";
    cells.emplace_back(verdict, analysis::moved(row.verdict) ? tone_of(row.verdict) : Tone::plain);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

Table table_of_runs(const analysis::History& history, const Scale& scale) {
  Table table;
  table.columns = {{"run", true}, {"created", true}};
  for (std::size_t i = 0; i < history.cases.size(); ++i) table.columns.push_back({fmt::format("[{}]", i + 1)});
  for (std::size_t run = 0; run < history.labels.size(); ++run) {
    std::vector<Cell> cells{history.labels[run], history.created[run]};
    for (const analysis::CaseHistory& row : history.cases) {
      cells.push_back(row.seconds[run] > 0 ? scale.print(row.seconds[run]) : "");
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace

Document history_document(const HistoryReport& report) {
  const analysis::History& history = report.history;
  const Scale scale = scale_of(history);
  Section section{"history", "", {}};
  section.add(Paragraph{headline_of(history), true});
  section.add(List{report.left_out, List::Mark::warning});
  section.add(Numbers{"", table_of_cases(history)});
  section.add(
      Numbers{fmt::format("Step times in {}, a run a row, oldest first:", scale.unit), table_of_runs(history, scale)});
  section.add(List{{fmt::format("One number per run and case. The largest shift of the mean of their logarithms is "
                                "held against permutations of the runs; p counts for all cases together, and up to "
                                "{:.2g} a change is proven. ~: none is.",
                                1 - history.confidence),
                    "Only the largest change of a case is named. A slow drift is named as the step that fits it best. "
                    "One odd run is no change: with ten runs a change must have lasted for two."},
                   List::Mark::none});
  Document document;
  document.sections.push_back(std::move(section));
  return document;
}

bool fails(const analysis::Gate& gate, const analysis::History& history, const analysis::CaseHistory& row) {
  return row.verdict == analysis::Verdict::slower &&
         row.largest->ratio > 1 + gate.share.value_or(history.smallest_effect);
}

}  // namespace harness::report
