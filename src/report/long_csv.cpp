#include "report/long_csv.h"

#include <cmath>
#include <optional>

#include "report/clean_text.h"
#include "report/csv_line.h"
#include "report/metrics.h"

namespace harness::report {
namespace {

// Of rank 0, where there is more than one host.
std::string host_of(const store::Result& result) {
  return result.rank_table.empty() ? "" : one_line(result.rank_table.front().host);
}

bool is_bound(const Metric& metric) {
  return metric.key == "effect.low" || metric.key == "effect.high";
}

}  // namespace

std::string show_long_csv(const store::Result& result, const analysis::Summary& summary) {
  const std::string host = host_of(result);
  std::string out = "run,created,name,host,case,metric,value,low,high\n";
  const auto finite = [](double value) { return std::isfinite(value) ? std::optional(value) : std::nullopt; };
  for (const analysis::CaseSummary& row : summary.cases) {
    for (const Metric& metric : case_metrics()) {
      const std::optional<double> value = is_bound(metric) ? std::nullopt : metric.value(result, row);
      if (!value || !std::isfinite(*value)) continue;
      CsvLine line;
      for (const std::string& text : {result.run_uuid, result.created, result.name}) line.text(one_line(text));
      line.text(host);
      line.text(one_line(row.name));
      line.text(metric.key);
      line.number(value);
      const bool has_interval = metric.key == "effect.ratio" && row.effect;
      line.number(has_interval ? finite(row.effect->low) : std::nullopt);
      line.number(has_interval ? finite(row.effect->high) : std::nullopt);
      out += line.take();
    }
  }
  return out;
}

}  // namespace harness::report
