#include "report/compare.h"
#include "report/json.h"

namespace harness::report {
namespace {

Json change_json(const analysis::Change& change) {
  return {{"verdict", analysis::name_of(change.judgement.verdict)},
          {"ratio", json_number(change.ratio)},
          {"low", json_number(change.low)},
          {"high", json_number(change.high)},
          {"n", change.n}};
}

Json measured_json(const analysis::MeasuredCase& measured) {
  Json parts = Json::object();
  for (const analysis::StepPart& part : measured.parts) parts[part.name] = json_number(part.seconds);
  return {{"runs", measured.run_seconds.size()},
          {"blocks", measured.block_seconds.size()},
          {"run_seconds", measured.run_seconds},
          {"step_seconds", json_number(measured.step_seconds)},
          {"tokens_per_second", json_number(measured.tokens_per_second)},
          {"mfu", json_number(measured.mfu)},
          {"part_seconds", std::move(parts)}};
}

// A row of a table, with more after its name and its change.
Json case_json(const std::string& name, const analysis::Change& change, const Json& more) {
  Json out = {{"name", name}};
  out.update(change_json(change));
  out.update(more);
  return out;
}

void put(const std::monostate&, const CompareReport&, Json&) {}

void put(const analysis::Comparison& comparison, const CompareReport&, Json& out) {
  Json& to = out["comparison"] = {{"a", comparison.first},
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
    to["cases"].push_back(
        case_json(row.name, row,
                  {{"a", measured_json(row.first)}, {"b", measured_json(row.second)}, {"per_token", row.per_token}}));
  }
}

void put(const analysis::Reproduction& reproduction, const CompareReport&, Json& out) {
  Json& to = out["reproduction"] = {{"a", reproduction.first},
                                    {"b", reproduction.second},
                                    {"a_confidence", reproduction.first_confidence},
                                    {"b_confidence", reproduction.second_confidence},
                                    {"changes", Json::array()},
                                    {"only_in_one", reproduction.only_in_one}};
  for (const analysis::ChangeReproduction& row : reproduction.changes) {
    to["changes"].push_back({{"name", row.name},
                             {"reproduced", analysis::name_of(row.reproduced)},
                             {"a", change_json(row.first)},
                             {"b", change_json(row.second)}});
  }
}

void put(const analysis::Pool& pool, const CompareReport& report, Json& out) {
  Json& to = out["pool"] = {{"control_moved", pool.unreliable},
                            {"comparisons", pool.comparisons},
                            {"confidence", pool.confidence},
                            {"smallest_effect", pool.smallest_effect},
                            {"cases", Json::array()}};
  for (const analysis::PooledCase& row : pool.cases) {
    Json runs = Json::array();
    for (const analysis::RunOfCase& run : row.runs) {
      const auto& effect = run.row->effect;
      runs.push_back({{"label", report.files[run.file].label},
                      {"ratio", json_number(run.ratio)},
                      {"low", effect ? json_number(effect->low) : Json(nullptr)},
                      {"high", effect ? json_number(effect->high) : Json(nullptr)},
                      {"step_seconds", json_number(run.row->step_seconds)}});
    }
    to["cases"].push_back(case_json(row.name, row,
                                    {{"judgement", pooled_verdict(row)},
                                     {"runs_differ", row.runs_differ},
                                     {"runs_differ_p", json_number(row.runs_differ_p)},
                                     {"measured", measured_json(row.measured)},
                                     {"runs", std::move(runs)},
                                     {"remarks", pooled_remarks(report.files, row)}}));
  }
}

void put(const analysis::History& history, const CompareReport&, Json& out) {
  Json& to = out["history"] = {{"min_runs", analysis::min_history_runs},
                               {"smallest_effect", history.smallest_effect},
                               {"confidence", history.confidence},
                               {"runs", files_json(history.files)},
                               {"cases", Json::array()}};
  for (const analysis::CaseHistory& row : history.cases) {
    Json seconds = Json::array();
    for (const double value : row.seconds) seconds.push_back(json_number(value));
    Json change = nullptr;
    if (row.largest) {
      change = {{"first_run_after", row.largest->run},
                {"ratio", json_number(row.largest->ratio)},
                {"p", json_number(row.largest->p)}};
    }
    to["cases"].push_back({{"name", row.name},
                           {"step_seconds", std::move(seconds)},
                           {"verdict", analysis::name_of(row.verdict)},
                           {"change", std::move(change)}});
  }
}

}  // namespace

std::string compare_json(const CompareReport& report) {
  Json out = {{"schema", "harness-compare"},         {"schema_version", 2},
              {"files", files_json(report.files)},   {"differences", differences_json(report.differences)},
              {"incomparable", report.incomparable}, {"unreliable", report.unreliable}};
  std::visit([&](const auto& answer) { put(answer, report, out); }, report.answer);
  return json_text(out);
}

}  // namespace harness::report
