#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "report/clean_text.h"
#include "report/metrics.h"
#include "report/show.h"

namespace harness::report {
namespace {

// Whether a spreadsheet would compute a text instead of showing it.
bool is_formula(std::string_view text) {
  const std::string_view rest = trim(text);
  if (rest.empty() || std::string_view("=+-@").find(rest.front()) == std::string_view::npos) return false;
  return !number_in<double>(rest.substr(rest.front() == '+' ? 1 : 0));
}

// One line of CSV as RFC 4180 has it: texts are cleaned, and quoted where they must be, an apostrophe before what a
// spreadsheet would take for a formula; numbers have full precision, and what has no value is empty.
class CsvLine {
 public:
  void text(std::string_view value) {
    std::string clean = cleaned(value);
    if (is_formula(clean)) clean.insert(0, "'");
    const bool plain = clean.find_first_of(",\"\r\n") == std::string::npos;
    add(plain ? clean : '"' + replaced(clean, {{'"', "\"\""}}) + '"');
  }
  void number(const std::optional<double>& value) {
    add(value && std::isfinite(*value) ? fmt::format("{}", *value) : "");
  }
  std::string take() { return std::move(out_) + "\n"; }

 private:
  void add(const std::string& cell) {
    if (started_) out_ += ',';
    started_ = true;
    out_ += cell;
  }
  std::string out_;
  bool started_ = false;
};

// "rates.seconds" is the column rates_seconds.
std::string column_of(const Metric& metric) {
  std::string column(metric.key);
  std::ranges::replace(column, '.', '_');
  return column;
}

}  // namespace

std::string show_csv(const store::Result& result, const analysis::Summary& summary) {
  CsvLine head;
  for (const char* name : {"case", "variable", "value", "status", "verdict"}) head.text(name);
  for (const Metric& metric : case_metrics()) {
    if (belongs(metric, result)) head.text(column_of(metric));
  }
  if (!result.points.empty()) head.text("operation");
  for (const std::string& variable : result.variables) head.text(variable);
  head.text("reason");
  std::string out = head.take();
  for (const analysis::CaseSummary& row : summary.cases) {
    const store::ResultCase& result_case = result.at(row);
    CsvLine line;
    for (const std::string* value : {&row.name, &result_case.variable, &result_case.value}) line.text(*value);
    line.text(store::name_of(row.status));
    line.text(analysis::name_of(row.judgement.verdict));
    for (const Metric& metric : case_metrics()) {
      if (belongs(metric, result)) line.number(metric.value(result, row));
    }
    if (!result.points.empty()) line.text(row.rates ? row.rates->operation : "");
    for (const std::string& setting : result_case.settings) line.text(setting);
    line.text(row.reason);
    out += line.take();
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
      CsvLine line;
      for (const std::string& text : {result.run_uuid, result.created, result.name, host, row.name})
        line.text(one_line(text));
      line.text(metric.key);
      line.number(value);
      const bool has_interval = metric.key == "effect.ratio";
      line.number(has_interval ? std::optional(row.effect->low) : std::nullopt);
      line.number(has_interval ? std::optional(row.effect->high) : std::nullopt);
      out += line.take();
    }
  }
  return out;
}

}  // namespace harness::report
