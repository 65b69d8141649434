#include "report/json/parts.h"
#include "report/pooled.h"
#include "report/show_comparison.h"

namespace harness::report {
namespace {

Json side_json(const analysis::CaseSide& side) {
  Json parts = Json::object();
  for (const analysis::StepPart& part : side.parts) parts[part.name] = json_number(part.seconds);
  return {{"runs", side.run_seconds.size()},
          {"blocks", side.block_seconds.size()},
          {"run_seconds", side.run_seconds},
          {"step_seconds", json_number(side.step_seconds)},
          {"tokens_per_second", json_number(side.tokens_per_second)},
          {"mfu", side.mfu ? json_number(*side.mfu) : Json(nullptr)},
          {"part_seconds", std::move(parts)}};
}

Json comparison_of(const analysis::Comparison& comparison) {
  Json out = {{"a", comparison.first},
              {"b", comparison.second},
              {"between_runs", comparison.between_runs},
              {"same_run_on_both_sides", comparison.same_run},
              {"comparisons", comparison.comparisons},
              {"confidence", comparison.confidence},
              {"smallest_effect", comparison.smallest_effect},
              {"cases", Json::array()},
              {"not_aligned", comparison.not_aligned},
              {"machines_differ", comparison.machines_differ}};
  for (const analysis::CaseComparison& row : comparison.cases) {
    out["cases"].push_back({{"name", row.name},
                            {"a", side_json(row.first)},
                            {"b", side_json(row.second)},
                            {"per_token", row.per_token},
                            {"ratio", json_number(row.ratio)},
                            {"low", json_number(row.low)},
                            {"high", json_number(row.high)},
                            {"verdict", analysis::name_of(row.judgement.verdict)}});
  }
  return out;
}

Json effect_json(const analysis::SideChange& side) {
  return {{"verdict", analysis::name_of(side.verdict)},
          {"ratio", json_number(side.ratio)},
          {"low", json_number(side.low)},
          {"high", json_number(side.high)},
          {"n", side.n}};
}

Json reproduction_of(const analysis::Reproduction& reproduction) {
  Json out = {{"a", reproduction.first},
              {"b", reproduction.second},
              {"a_by_runs", reproduction.first_by_runs},
              {"b_by_runs", reproduction.second_by_runs},
              {"a_confidence", reproduction.first_confidence},
              {"b_confidence", reproduction.second_confidence},
              {"changes", Json::array()},
              {"only_in_one", reproduction.only_in_one}};
  for (const analysis::ChangeReproduction& row : reproduction.changes) {
    out["changes"].push_back({{"name", row.name},
                              {"a", effect_json(row.first)},
                              {"b", effect_json(row.second)},
                              {"verdict", analysis::name_of(row.reproduced)}});
  }
  return out;
}

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

std::string comparison_json(const ComparisonReport& report) {
  Json out = {{"schema", "harness-compare"},         {"schema_version", 1},
              {"files", files_json(report.files)},   {"differences", differences_json(report.differences)},
              {"incomparable", report.incomparable}, {"unreliable", report.unreliable},
              {"comparisons", Json::array()},        {"reproductions", Json::array()}};
  for (const analysis::Comparison& comparison : report.comparisons)
    out["comparisons"].push_back(comparison_of(comparison));
  for (const analysis::Reproduction& reproduction : report.reproductions) {
    out["reproductions"].push_back(reproduction_of(reproduction));
  }
  return json_text(out);
}

std::string history_json(const HistoryReport& report) {
  const analysis::History& history = report.history;
  Json out = {{"schema", "harness-history"},
              {"schema_version", 1},
              {"min_runs", analysis::min_history_runs},
              {"smallest_effect", history.smallest_effect},
              {"confidence", history.confidence},
              {"runs", Json::array()},
              {"cases", Json::array()},
              {"left_out", report.left_out}};
  for (std::size_t run = 0; run < history.labels.size(); ++run) {
    out["runs"].push_back({{"label", history.labels[run]}, {"created", history.created[run]}});
  }
  for (const analysis::CaseHistory& row : history.cases) {
    Json seconds = Json::array();
    for (const double value : row.seconds) seconds.push_back(json_number(value));
    Json json = {{"name", row.name},
                 {"step_seconds", std::move(seconds)},
                 {"verdict", analysis::name_of(row.verdict)},
                 {"change", nullptr}};
    if (row.largest) {
      json["change"] = {{"first_run_after", row.largest->run},
                        {"ratio", json_number(row.largest->ratio)},
                        {"p", json_number(row.largest->p)}};
    }
    out["cases"].push_back(std::move(json));
  }
  return json_text(out);
}

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
  return json_text(out);
}

}  // namespace harness::report
