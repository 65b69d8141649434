#include <cmath>

#include "base/text.h"
#include "report/csv_line.h"
#include "report/pooled.h"

namespace harness::report {
namespace {

// In the first file that has it: variable and value are the same in all.
const store::ResultCase* planned(const PooledReport& report, const std::string& name) {
  for (const analysis::ComparedFile& file : report.files) {
    if (const store::ResultCase* found = file.result->find_case(name)) return found;
  }
  return nullptr;
}

}  // namespace

std::string pooled_csv(const PooledReport& report) {
  const std::vector<Metric> metrics = pooled_metrics(*report.files[0].result);
  CsvLine head;
  for (const char* name : {"case", "variable", "value", "verdict", "runs", "of_runs", "ratio", "low", "high",
                           "runs_differ", "runs_differ_p"}) {
    head.text(name);
  }
  for (const Metric& metric : metrics) head.text(csv_column(metric.key));
  head.text("remarks");
  std::string out = head.take();
  for (const analysis::PooledCase& row : report.pool.cases) {
    const store::ResultCase* of_case = planned(report, row.name);
    CsvLine line;
    line.text(row.name);
    line.text(of_case == nullptr ? "" : of_case->variable);
    line.text(of_case == nullptr ? "" : of_case->value);
    line.text(analysis::name_of(row.judgement.verdict));
    line.number(row.n);
    line.number(static_cast<double>(report.files.size()));
    for (const double value : {row.ratio, row.low, row.high}) {
      line.number(std::isfinite(value) ? std::optional(value) : std::nullopt);
    }
    line.text(row.runs_differ ? "true" : "false");
    line.number(row.runs_differ_p);
    for (const Metric& metric : metrics) line.number(pooled_value(report, row, metric));
    line.text(join(pooled_remarks(report, row), "; "));
    out += line.take();
  }
  return out;
}

}  // namespace harness::report
