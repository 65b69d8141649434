#include <cmath>
#include <nlohmann/json.hpp>

#include "report/files_json.h"
#include "report/json_number.h"
#include "report/show_comparison.h"

namespace harness::report {
namespace {

using Json = nlohmann::ordered_json;

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
              {"smallest_effect", comparison.smallest_effect},
              {"cases", Json::array()},
              {"not_aligned", comparison.not_aligned}};
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
  // ASCII alone, so that the JSON of a hostile file cannot control a terminal either.
  return out.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace harness::report
