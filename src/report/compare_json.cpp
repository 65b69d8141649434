#include "report/compare.h"
#include "report/json.h"

namespace harness::report {
namespace {

Json files_json(const std::vector<analysis::ComparedFile>& files) {
  return json_list(files, [](const analysis::ComparedFile& file) -> Json {
    return {{"label", file.label}, {"run_uuid", file.result->run_uuid}, {"created", file.result->created}};
  });
}

Json difference_json(const analysis::Difference& difference) {
  return {{"group", difference.group}, {"name", difference.name}, {"values", difference.values}};
}

Json change_json(const analysis::Change& change) {
  return {{"verdict", analysis::name_of(change.judgement.verdict)},
          {"ratio", json_number(change.ratio)},
          {"low", json_number(change.low)},
          {"high", json_number(change.high)},
          {"n", change.n}};
}

Json measured_json(const analysis::MeasuredCase& measured) {
  return {{"runs", measured.run_seconds.size()},
          {"blocks", measured.block_seconds.size()},
          {"run_seconds", measured.run_seconds},
          {"step_seconds", json_number(measured.step_seconds)},
          {"tokens_per_second", json_number(measured.tokens_per_second)},
          {"mfu", json_number(measured.mfu)}};
}

Json case_json(const std::string& name, const analysis::Change& change, const Json& more) {
  Json out = {{"name", name}};
  out.update(change_json(change));
  out.update(more);
  return out;
}

void put(const std::monostate&, const CompareReport&, Json&) {}

void put(const analysis::Comparison& comparison, const CompareReport&, Json& out) {
  const auto row_json = [](const analysis::CaseComparison& row) {
    return case_json(row.name, row,
                     {{"a", measured_json(row.first)}, {"b", measured_json(row.second)}, {"per_token", row.per_token}});
  };
  out["comparison"] = {{"a", comparison.first},
                       {"b", comparison.second},
                       {"between_runs", comparison.between_runs},
                       {"same_run_on_both_sides", comparison.same_run},
                       {"comparisons", comparison.comparisons},
                       {"confidence", comparison.confidence},
                       {"smallest_effect", comparison.smallest_effect},
                       {"cases", json_list(comparison.cases, row_json)},
                       {"not_aligned", comparison.not_aligned}};
}

void put(const analysis::Reproduction& reproduction, const CompareReport&, Json& out) {
  const auto row_json = [](const analysis::ChangeReproduction& row) -> Json {
    return {{"name", row.name},
            {"reproduced", analysis::name_of(row.reproduced)},
            {"a", change_json(row.first)},
            {"b", change_json(row.second)}};
  };
  out["reproduction"] = {{"a", Json::array({reproduction.first})},
                         {"b", Json::array({reproduction.second})},
                         {"a_confidence", reproduction.first_confidence},
                         {"b_confidence", reproduction.second_confidence},
                         {"changes", json_list(reproduction.changes, row_json)},
                         {"only_in_one", reproduction.only_in_one}};
}

void put(const analysis::Pool& pool, const CompareReport& report, Json& out) {
  const auto run_json = [&](const analysis::RunOfCase& run) -> Json {
    const auto& effect = run.row->effect;
    return {{"label", report.files[run.file].label},
            {"ratio", json_number(run.ratio)},
            {"low", effect ? json_number(effect->low) : Json(nullptr)},
            {"high", effect ? json_number(effect->high) : Json(nullptr)},
            {"step_seconds", json_number(run.row->step_seconds)}};
  };
  const auto row_json = [&](const analysis::PooledCase& row) {
    return case_json(row.name, row,
                     {{"judgement", pooled_verdict(row)},
                      {"runs_differ", row.runs_differ},
                      {"measured", measured_json(row.measured)},
                      {"runs", json_list(row.runs, run_json)},
                      {"remarks", pooled_remarks(report.files, row)}});
  };
  out["pool"] = {{"control_moved", pool.unreliable},
                 {"comparisons", pool.comparisons},
                 {"confidence", pool.confidence},
                 {"smallest_effect", pool.smallest_effect},
                 {"cases", json_list(pool.cases, row_json)}};
}

void put(const analysis::History& history, const CompareReport&, Json& out) {
  const auto row_json = [](const analysis::CaseHistory& row) -> Json {
    Json change = nullptr;
    if (row.largest) {
      change = {{"first_run_after", row.largest->run},
                {"ratio", json_number(row.largest->ratio)},
                {"p", json_number(row.largest->p)}};
    }
    return {{"name", row.name},
            {"step_seconds", json_list(row.seconds, [](double value) { return json_number(value); })},
            {"verdict", analysis::name_of(row.verdict)},
            {"change", std::move(change)}};
  };
  out["history"] = {{"min_runs", analysis::min_history_runs},
                    {"smallest_effect", history.smallest_effect},
                    {"confidence", history.confidence},
                    {"runs", files_json(history.files)},
                    {"cases", json_list(history.cases, row_json)}};
}

}  // namespace

std::string compare_json(const CompareReport& report) {
  Json out = {{"schema", "harness-compare"},         {"schema_version", 2},
              {"files", files_json(report.files)},   {"differences", json_list(report.differences, difference_json)},
              {"incomparable", report.incomparable}, {"unreliable", report.unreliable}};
  std::visit([&](const auto& answer) { put(answer, report, out); }, report.answer);
  return json_text(out);
}

}  // namespace harness::report
