#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/metrics.h"
#include "report/show.h"

namespace harness::report {
namespace {

class Line {
 public:
  void text(std::string_view value) {
    if (started_) out_ += ',';
    started_ = true;
    if (value.find_first_of(",\"\r\n") == std::string_view::npos) {
      out_ += value;
      return;
    }
    out_ += '"';
    for (const char c : value) {
      if (c == '"') out_ += '"';
      out_ += c;
    }
    out_ += '"';
  }
  void number(const std::optional<double>& value) { text(value ? fmt::format("{}", *value) : ""); }
  std::string take() { return std::move(out_) + "\n"; }

 private:
  std::string out_;
  bool started_ = false;
};

bool belongs(const Metric& metric, const store::Result& result) {
  return !result.points.empty() || !metric.key.starts_with("rates.");
}

std::string column_of(const Metric& metric) {
  std::string column(metric.key);
  std::ranges::replace(column, '.', '_');
  return column;
}

}  // namespace

std::string show_csv(const store::Result& result, const analysis::Summary& summary) {
  Line head;
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
    Line line;
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
