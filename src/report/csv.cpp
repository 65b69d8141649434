#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "report/document.h"
#include "report/metrics.h"
#include "report/sections.h"

namespace harness::report {
namespace {

// Whether a spreadsheet would compute a text instead of showing it.
bool is_formula(std::string_view text) {
  const std::string_view rest = trim(text);
  if (rest.empty() || std::string_view("=+-@").find(rest.front()) == std::string_view::npos) return false;
  return !number_in<double>(rest.substr(rest.front() == '+' ? 1 : 0));
}

// Cells of CSV as RFC 4180 has it: texts are cleaned, and quoted where they must be, an apostrophe before what a
// spreadsheet would take for a formula; numbers have full precision, and what has no value is empty.
std::string cell(std::string_view text) {
  std::string clean = cleaned(text);
  if (is_formula(clean)) clean.insert(0, "'");
  const bool plain = clean.find_first_of(",\"\r\n") == std::string::npos;
  return plain ? clean : '"' + replaced(clean, {{'"', "\"\""}}) + '"';
}
std::string cell(const std::optional<double>& number) {
  return number && std::isfinite(*number) ? fmt::format("{}", *number) : "";
}

// "rates.seconds" is the column rates_seconds.
std::string column_of(const Metric& metric) {
  std::string column(metric.key);
  std::ranges::replace(column, '.', '_');
  return column;
}

}  // namespace

std::string show_csv(const store::Result& result, const analysis::Summary& summary) {
  std::vector<std::string> head{"case", "variable", "value", "status", "verdict"};
  for (const Metric& metric : case_metrics()) {
    if (belongs(metric, result)) head.push_back(column_of(metric));
  }
  if (!result.points.empty()) head.emplace_back("operation");
  for (const std::string& variable : result.variables) head.push_back(cell(variable));
  head.emplace_back("reason");
  std::string out = join(head, ",") + "\n";
  for (const analysis::CaseSummary& row : summary.cases) {
    const store::ResultCase& result_case = result.at(row);
    std::vector<std::string> cells{cell(row.name), cell(result_case.variable), cell(result_case.value),
                                   cell(store::name_of(row.status)), cell(analysis::name_of(row.judgement.verdict))};
    for (const Metric& metric : case_metrics()) {
      if (belongs(metric, result)) cells.push_back(cell(metric.value(result, row)));
    }
    if (!result.points.empty()) cells.push_back(cell(row.rates ? row.rates->operation : ""));
    for (const std::string& setting : result_case.settings) cells.push_back(cell(setting));
    cells.push_back(cell(row.reason));
    out += join(cells, ",") + "\n";
  }
  return out;
}

std::string show_long_csv(const store::Result& result, const analysis::Summary& summary) {
  const std::string host = result.rank_table.empty() ? "" : result.rank_table.front().host;  // of rank 0
  std::string out = "run,created,name,host,case,metric,value,low,high\n";
  for (const analysis::CaseSummary& row : summary.cases) {
    for (const Metric& metric : case_metrics()) {
      if (metric.key == "effect.low" || metric.key == "effect.high") continue;  // columns of the ratio
      const std::optional<double> value = metric.value(result, row);
      if (!value || !std::isfinite(*value)) continue;
      std::vector<std::string> cells;
      for (const std::string& text : {result.run_uuid, result.created, result.name, host, row.name})
        cells.push_back(cell(one_line(text)));
      cells.push_back(cell(metric.key));
      cells.push_back(cell(value));
      const bool has_interval = metric.key == "effect.ratio";
      cells.push_back(has_interval ? cell(row.effect->low) : "");
      cells.push_back(has_interval ? cell(row.effect->high) : "");
      out += join(cells, ",") + "\n";
    }
  }
  return out;
}

}  // namespace harness::report
