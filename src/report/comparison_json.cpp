#include <cmath>
#include <nlohmann/json.hpp>

#include "report/show_comparison.h"

namespace harness {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json side_json(const CaseSide& side) {
  Json parts = Json::object();
  for (const StepPart& part : side.parts) parts[part.name] = number(part.seconds);
  return {{"runs", side.run_seconds.size()},
          {"blocks", side.block_seconds.size()},
          {"run_seconds", side.run_seconds},
          {"step_seconds", number(side.step_seconds)},
          {"tokens_per_second", number(side.tokens_per_second)},
          {"mfu", side.mfu ? number(*side.mfu) : Json(nullptr)},
          {"part_seconds", std::move(parts)}};
}

Json comparison_of(const Comparison& one) {
  Json out = {{"a", one.first},
              {"b", one.second},
              {"between_runs", one.between_runs},
              {"same_run_on_both_sides", one.same_run},
              {"comparisons", one.comparisons},
              {"smallest_effect", one.smallest_effect},
              {"cases", Json::array()},
              {"not_aligned", one.not_aligned}};
  for (const CaseComparison& row : one.cases) {
    out["cases"].push_back({{"name", row.name},
                            {"a", side_json(row.first)},
                            {"b", side_json(row.second)},
                            {"per_token", row.per_token},
                            {"ratio", number(row.ratio)},
                            {"low", number(row.low)},
                            {"high", number(row.high)},
                            {"verdict", name_of(row.judgement.verdict)}});
  }
  return out;
}

Json effect_json(const SideChange& side) {
  return {{"verdict", name_of(side.verdict)},
          {"ratio", number(side.ratio)},
          {"low", number(side.low)},
          {"high", number(side.high)},
          {"n", side.n}};
}

Json reproduction_of(const Reproduction& one) {
  Json out = {{"a", one.first},
              {"b", one.second},
              {"a_by_runs", one.first_by_runs},
              {"b_by_runs", one.second_by_runs},
              {"changes", Json::array()},
              {"only_in_one", one.only_in_one}};
  for (const ChangeReproduction& row : one.changes) {
    out["changes"].push_back({{"name", row.name},
                              {"a", effect_json(row.first)},
                              {"b", effect_json(row.second)},
                              {"verdict", name_of(row.reproduced)}});
  }
  return out;
}

}  // namespace

std::string comparison_json(const ComparisonReport& report) {
  Json out = {{"schema", "harness-compare"},
              {"schema_version", 1},
              {"files", Json::array()},
              {"differences", Json::array()},
              {"incomparable", report.incomparable},
              {"unreliable", report.unreliable},
              {"comparisons", Json::array()},
              {"reproductions", Json::array()}};
  for (const ComparedFile& file : report.files) {
    out["files"].push_back(
        {{"label", file.label}, {"run_uuid", file.result->run_uuid}, {"created", file.result->created}});
  }
  for (const Difference& one : report.differences) {
    out["differences"].push_back({{"group", one.group}, {"name", one.name}, {"values", one.values}});
  }
  for (const Comparison& one : report.comparisons) out["comparisons"].push_back(comparison_of(one));
  for (const Reproduction& one : report.reproductions) out["reproductions"].push_back(reproduction_of(one));
  // ASCII alone: JSON on a terminal must not command it either.
  return out.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace harness
