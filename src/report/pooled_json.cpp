#include <nlohmann/json.hpp>

#include "report/files_json.h"
#include "report/json_number.h"
#include "report/metric_json.h"
#include "report/pooled.h"

namespace harness::report {
namespace {

using Json = nlohmann::ordered_json;

Json case_json(const PooledReport& report, const analysis::PooledCase& row) {
  Json out = {{"name", row.name},
              {"verdict", analysis::name_of(row.judgement.verdict)},
              {"judgement", pooled_verdict(row)},
              {"ratio", json_number(row.ratio)},
              {"low", json_number(row.low)},
              {"high", json_number(row.high)},
              {"n", row.n},
              {"runs_differ", row.runs_differ},
              {"runs_differ_p", json_number(row.runs_differ_p)},
              {"runs", Json::array()},
              {"medians", Json::object()},
              {"remarks", pooled_remarks(report, row)}};
  for (const analysis::RunOfCase& run : row.runs) {
    Json of_run = {{"label", report.files[run.file].label},
                   {"ratio", json_number(run.ratio)},
                   {"low", nullptr},
                   {"high", nullptr},
                   {"step_seconds", json_number(run.row->step_seconds)}};
    if (run.row->effect) {
      of_run["low"] = json_number(run.row->effect->low);
      of_run["high"] = json_number(run.row->effect->high);
    }
    out["runs"].push_back(std::move(of_run));
  }
  for (const Metric& metric : pooled_metrics(*report.files[0].result)) {
    put_metric(metric, pooled_value(report, row, metric), out["medians"]);
  }
  return out;
}

}  // namespace

std::string pooled_json(const PooledReport& report) {
  Json out = {{"schema", "harness-pooled"},
              {"schema_version", 1},
              {"headline", pooled_headline(report)},
              {"files", files_json(report.files)},
              {"differences", differences_json(report.differences)},
              {"unreliable", report.unreliable},
              {"control_moved", report.pool.unreliable},
              {"comparisons", report.pool.comparisons},
              {"confidence", report.pool.confidence},
              {"smallest_effect", report.pool.smallest_effect},
              {"cases", Json::array()}};
  for (const analysis::PooledCase& row : report.pool.cases) out["cases"].push_back(case_json(report, row));
  // ASCII alone, so that the JSON of a hostile file cannot control a terminal either.
  return out.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace harness::report
