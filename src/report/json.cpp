#include "report/json.h"

#include <fmt/format.h>

#include <cmath>
#include <type_traits>

#include "base/text.h"
#include "config/model.h"
#include "report/sections.h"

namespace harness::report {

Json json_number(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::string json_text(const Json& document) {
  return document.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

namespace {

// Writes a metric's value into the JSON object `out`, or null. "effect.ratio" becomes the key "ratio" of the object
// "effect", which is created if missing; if "effect" is null already, nothing is written.
void put_metric(const Metric& metric, const std::optional<double>& value, Json& out) {
  const Json::json_pointer place("/" + replaced(metric.key, {{'.', "/"}})), object = place.parent_pointer();
  if (out.contains(object) && out[object].is_null()) return;
  // A median of counts need not be an integer.
  const bool whole = metric.unit == Unit::count && value && *value == std::floor(*value);
  out[place] = whole ? Json(static_cast<std::int64_t>(*value)) : json_number(value);
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

Json cause_json(const analysis::Cause& cause) {
  return {{"fault", cause.fault},
          {"words", cause.words},
          {"or_else", json_list(cause.or_else,
                                [](const auto& row) -> Json {
                                  return {{"fault", row.first}, {"words", row.second}};
                                })},
          {"checks", cause.checks},
          {"confirmed_by", text_or_null(cause.confirmed_by)},
          {"with_s", cause.with_s},
          {"explains", cause.explains}};
}

Json diagnosis_json(const store::Result& result, const analysis::Explanation& explanation) {
  if (!explanation.diagnosis) return nullptr;
  const analysis::Diagnosis& d = *explanation.diagnosis;
  return {
      {"case", result.at(d).name}, {"text", diagnosis_words(explanation)}, {"measured_s", d.measured_s},
      {"healthy_s", d.healthy_s},  {"explained_s", d.explained_s},         {"compute_factor", d.compute_factor},
      {"margin", d.margin},        {"error_is_known", d.error_is_known},   {"causes", json_list(d.causes, cause_json)}};
}

Json compared_json(const store::Result& result, const analysis::CaseCompared& compared) {
  const auto kind_json = [](const analysis::KindCompared& row) -> Json {
    return {{"kind", row.kind},
            {"group", row.group},
            {"recomputed", row.recomputed},
            {"measured_takes_s", row.measured_takes_s},
            {"predicted_takes_s", row.predicted_takes_s},
            {"measured_owns_s", row.measured_owns_s},
            {"predicted_owns_s", row.predicted_owns_s}};
  };
  const auto part_json = [](const analysis::PartCompared& row) -> Json {
    return {{"part", key_of(row.part)}, {"measured_s", row.measured_s}, {"predicted_s", row.predicted_s}};
  };
  return {{"name", result.at(compared).name},
          {"measured_s", compared.measured_s},
          {"predicted_s", compared.predicted_s},
          {"kinds", json_list(compared.kinds, kind_json)},
          {"parts", json_list(compared.parts, part_json)}};
}

Json explanation_json(const store::Result& result, const analysis::Explanation& explanation) {
  return {{"why_none", text_or_null(explanation.why_none)},
          {"hardware", explanation.hardware},
          {"calibration", explanation.calibration},
          {"of_prediction", explanation.of_prediction},
          {"diagnosis", diagnosis_json(result, explanation)},
          {"why_no_diagnosis", text_or_null(explanation.why_no_diagnosis)},
          {"cases", json_list(explanation.cases, [&](const auto& row) { return compared_json(result, row); })},
          {"not_predicted", json_list(explanation.not_predicted, [&](const auto& row) -> Json {
             return {{"name", result.at(row).name}, {"why", row.why}};
           })}};
}

Json model_json(const config::Model& model) {
  Json out = {{"name", model.name}};
  config::each_key(model, [&]<class T>(const config::ModelKey& key, const T& value) {
    if constexpr (std::is_enum_v<T>) {
      out[key.name] = config::word_of(value, config::words_for(value));
    } else {
      out[key.name] = value;
    }
  });
  return out;
}

Json effect_json(const std::optional<analysis::Effect>& effect) {
  if (!effect) return nullptr;
  return {{"verdict", analysis::name_of(effect->verdict)},
          {"ratio", effect->ratio},
          {"low", effect->low},
          {"high", effect->high},
          {"rounds", effect->rounds},
          {"rounds_needed", effect->rounds_needed}};
}

Json case_json(const store::Result& result, const analysis::CaseSummary& row) {
  const store::ResultCase& result_case = result.at(row);
  Json out = {{"name", row.name},
              {"variable", result_case.variable},
              {"value", result_case.value},
              {"reference", store::is_reference(row.role) ? Json() : Json(result.case_at(result_case.reference).name)},
              {"status", store::name_of(row.status)},
              {"judgement", analysis::name_of(row.judgement)},
              {"reason", row.reason},
              {"another_training", row.another_training},
              {"trains_differently", row.trains_differently},
              {"effect", nullptr}};
  if (row.effect) out["effect"] = {{"verdict", analysis::name_of(row.effect->verdict)}};
  if (!result.points.empty()) out["rates"] = nullptr;
  if (row.rates) {
    out["rates"] = {
        {"operation", row.rates->operation}, {"uses", uses_of(result, row)}, {"beyond_limit", row.rates->impossible}};
  }
  for (const Metric& metric : case_metrics()) {
    if (belongs(metric, result)) put_metric(metric, metric.value(result, row), out);
  }
  Json settings = Json::object();
  for (const std::string& variable : result.variables) settings[variable] = result.setting(result_case, variable);
  out["settings"] = std::move(settings);
  return out;
}

Json cost_of_case(const analysis::CaseCost& cost) {
  return {{"name", cost.name},
          {"ranks", cost.ranks},
          {"tokens_per_second", cost.tokens_per_second},
          {"duration_s", cost.duration_s},
          {"price", cost.price}};
}

Json saving_json(const analysis::CaseSaving& saving) {
  Json row = cost_of_case(saving.after);
  row["gpus_recovered"] = {saving.gpus_low, saving.gpus_recovered, saving.gpus_high};
  row["saved_share"] = {saving.saved_share_low, saving.saved_share, saving.saved_share_high};
  row["saved_run"] = saving.saved_run;
  row["saved_yearly"] = saving.saved_yearly;
  return row;
}

Json cost_json(const analysis::CostEstimate& e) {
  return {
      {"priced", e.ranks_are_gpus ? "GPU" : "rank"},
      {"per_gpu_hour", e.cost.per_gpu_hour},
      {"currency", e.cost.currency},
      {"run_tokens", e.cost.run_tokens},
      {"measured_steps", e.steps},
      {"rests_on", fmt::format("{} tokens/s; says nothing about convergence", e.predicted ? "predicted" : "measured")},
      {"before", cost_of_case(e.before)},
      {"after", json_list(e.after, saving_json)}};
}

Json level_json(const store::Result& result, const analysis::LevelFindings& level) {
  const bool carries_over = level.carry_over != analysis::no_case;
  const auto aside_json = [&](const auto& row) -> Json {
    return {{"case", result.case_at(row.case_index).name}, {"set_aside", row.set_aside}, {"blocks", row.blocks}};
  };
  return {{"reference", result.case_at(level.reference).name},
          {"block_deviation", level.block_deviation},
          {"time_constant_s", json_number(level.time_constant_s)},
          {"carry_over", carries_over ? Json(result.case_at(level.carry_over).name) : Json()},
          {"serial_correlation", level.serial_correlation},
          {"widening", level.widening},
          {"control_is_reference", !level.baseline_left},
          {"set_aside", json_list(level.set_aside, aside_json)},
          {"fastest_block", level.range ? Json(level.range->fastest) : Json()},
          {"slowest_block", level.range ? Json(level.range->slowest) : Json()},
          {"change", level.range ? Json(std::expm1(level.range->log_change)) : Json()}};
}

Json block_json(const store::Result& result, const analysis::FinishedBlock& block) {
  Json out = {{"block", block.index},
              {"case", result.case_at(block.case_index).name},
              {"round", block.round},
              {"session", block.session},
              {"time_unix_s", block.steps_unix_s},
              {"seconds", block.seconds}};
  if (block.index >= result.conditions.size()) return out;
  const machine::Conditions& conditions = result.conditions[block.index];
  out["steal_share"] = conditions.steal_share;
  out["foreign_cores"] = conditions.foreign_cores;
  out["busiest_host"] = conditions.busiest_host;
  return out;
}

Json looks_json(const analysis::Summary& summary) {
  Json out = Json::array();
  for (const analysis::Look& look : summary.looks) {
    if (look.rounds == analysis::at_the_end) continue;
    out.push_back({{"rounds", look.rounds}, {"share", look.share}});
  }
  return out;
}

Json finding_json(const store::Result& result, const store::ResultFinding& row) {
  return {
      {"verdict", row.verdict}, {"check", row.check}, {"case", row.is_of_nodes() ? Json() : Json(result.at(row).name)},
      {"where", row.where},     {"nodes", row.nodes}, {"evidence", row.evidence},
      {"remedy", row.remedy},   {"docs", row.docs}};
}

}  // namespace

std::string show_json(const store::Result& result, const analysis::Summary& summary,
                      const std::optional<analysis::CostEstimate>& cost,
                      const std::optional<analysis::Explanation>& explanation) {
  Json out = {{"schema", "harness-show"},
              {"schema_version", 1},
              {"headline", headline(result, summary)},
              {"name", result.name},
              {"backend", result.backend},
              {"stands_for", result.step_backend()},
              {"created", result.created},
              {"run_uuid", result.run_uuid},
              {"tool_version", result.tool_version},
              {"state", store::name_of(result.state)},
              {"standing", text_or_null(result.standing)},
              {"partial", summary.partial},
              {"unreliable", summary.unreliable},
              {"failed_cases", summary.failed_cases},
              {"lost_blocks",
               json_list(summary.lost,
                         [&](const analysis::LostBlock& lost) -> Json {
                           return {{"case", result.at(lost).name}, {"round", lost.round}, {"reason", lost.reason}};
                         })},
              {"ranks", result.ranks},
              {"nodes", result.nodes},
              {"sessions", result.sessions},
              {"rounds", result.rounds},
              {"warmup_steps", result.warmup_steps},
              {"steps", result.steps},
              {"seed", result.seed},
              {"smallest_effect", result.smallest_effect},
              {"interval", result.interval},
              {"confidence", result.confidence},
              {"looks", looks_json(summary)},
              {"model", model_json(result.model.resolved())},
              {"flop_formula", result.flop_formula},
              {"peak_source", result.peak_source},
              {"control", effect_json(summary.control)},
              {"noise", summary.noise},
              // One entry for each size of an operation.
              {"levels", json_list(summary.levels, [&](const auto& level) { return level_json(result, level); })},
              {"machine",
               {{"blocks", json_list(analysis::finished_blocks(result),
                                     [&](const auto& block) { return block_json(result, block); })}}},
              {"cases", json_list(summary.cases, [&](const auto& row) { return case_json(result, row); })},
              {"warnings", summary.warnings}};
  if (!result.points.empty())
    out["average_bus_bytes_per_s"] = json_number(analysis::average_bus_bandwidth(result, summary));
  if (!result.doctor.findings.empty())
    out["doctor"] = json_list(result.doctor.findings, [&](const auto& row) { return finding_json(result, row); });
  if (cost) out["cost"] = cost_json(*cost);
  if (explanation) out["prediction"] = explanation_json(result, *explanation);
  return json_text(out);
}

}  // namespace harness::report
