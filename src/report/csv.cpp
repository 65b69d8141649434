#include "report/csv_line.h"
#include "report/metrics.h"
#include "report/show.h"

namespace harness::report {
namespace {

bool belongs(const Metric& metric, const store::Result& result) {
  return !result.points.empty() || !metric.key.starts_with("rates.");
}

}  // namespace

std::string show_csv(const store::Result& result, const analysis::Summary& summary) {
  CsvLine head;
  for (const char* name : {"case", "variable", "value", "status", "verdict"}) head.text(name);
  for (const Metric& metric : case_metrics()) {
    if (belongs(metric, result)) head.text(csv_column(metric.key));
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

}  // namespace harness::report
