#include "report/json.h"

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "analysis/blocks.h"
#include "analysis/level_course.h"
#include "analysis/summary.h"
#include "config/model.h"
#include "report/metrics.h"
#include "report/sections.h"
#include "report/show.h"

namespace harness::report {

Json json_number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}
Json json_number(const std::optional<double>& value) {
  return value ? json_number(*value) : Json(nullptr);
}

Json files_json(std::span<const analysis::ComparedFile> files) {
  Json out = Json::array();
  for (const analysis::ComparedFile& file : files) {
    out.push_back({{"label", file.label}, {"run_uuid", file.result->run_uuid}, {"created", file.result->created}});
  }
  return out;
}

Json differences_json(const std::vector<analysis::Difference>& differences) {
  Json out = Json::array();
  for (const analysis::Difference& difference : differences) {
    out.push_back({{"group", difference.group}, {"name", difference.name}, {"values", difference.values}});
  }
  return out;
}

std::string json_text(const Json& document) {
  return document.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

namespace {

// Writes a metric's value into the JSON object `out`, null where there is none. "effect.ratio" becomes the key "ratio"
// of the object "effect", which is made if it is missing; where "effect" is null already, nothing is written.
void put_metric(const Metric& metric, const std::optional<double>& value, Json& out) {
  const std::string key(metric.key);
  // A median of counts need not be whole.
  const bool whole = metric.unit == Unit::count && value && *value == std::floor(*value);
  const auto json = whole ? Json(static_cast<std::int64_t>(*value)) : json_number(value);
  const std::size_t dot = key.find('.');
  if (dot == std::string::npos) {
    out[key] = json;
    return;
  }
  const std::string object = key.substr(0, dot);
  if (!out.contains(object)) out[object] = Json::object();
  if (out[object].is_object()) out[object][key.substr(dot + 1)] = json;
}

Json cause_json(const analysis::Cause& cause) {
  Json out = {{"fault", cause.fault},
              {"words", cause.words},
              {"or_else", Json::array()},
              {"checks", cause.checks},
              {"confirmed_by", cause.confirmed_by.empty() ? Json() : Json(cause.confirmed_by)},
              {"with_s", cause.with_s},
              {"explains", cause.explains}};
  for (const auto& [fault, words] : cause.or_else) out["or_else"].push_back({{"fault", fault}, {"words", words}});
  return out;
}

Json diagnosis_json(const store::Result& result, const analysis::Explanation& explanation) {
  if (!explanation.diagnosis) return nullptr;
  const analysis::Diagnosis& d = *explanation.diagnosis;
  Json out = {{"case", result.at(d).name}, {"text", diagnosis_words(explanation)}, {"measured_s", d.measured_s},
              {"healthy_s", d.healthy_s},  {"explained_s", d.explained_s},         {"compute_factor", d.compute_factor},
              {"margin", d.margin},        {"error_is_known", d.error_is_known},   {"causes", Json::array()}};
  for (const analysis::Cause& cause : d.causes) out["causes"].push_back(cause_json(cause));
  return out;
}

Json compared_json(const store::Result& result, const analysis::CaseCompared& compared) {
  Json out = {{"name", result.at(compared).name},
              {"measured_s", compared.measured_s},
              {"predicted_s", compared.predicted_s},
              {"kinds", Json::array()},
              {"parts", Json::array()}};
  for (const analysis::KindCompared& row : compared.kinds) {
    out["kinds"].push_back({{"kind", row.kind},
                            {"group", row.group},
                            {"recomputed", row.recomputed},
                            {"measured_takes_s", row.measured_takes_s},
                            {"predicted_takes_s", row.predicted_takes_s},
                            {"measured_owns_s", row.measured_owns_s},
                            {"predicted_owns_s", row.predicted_owns_s}});
  }
  for (const analysis::PartCompared& row : compared.parts)
    out["parts"].push_back(
        {{"part", key_of(row.part)}, {"measured_s", row.measured_s}, {"predicted_s", row.predicted_s}});
  return out;
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

// Measured steps beside predicted ones.
Json explanation_json(const store::Result& result, const analysis::Explanation& explanation) {
  Json out = {{"why_none", text_or_null(explanation.why_none)},
              {"hardware", explanation.hardware},
              {"calibration", explanation.calibration},
              {"of_prediction", explanation.of_prediction},
              {"diagnosis", diagnosis_json(result, explanation)},
              {"why_no_diagnosis", text_or_null(explanation.why_no_diagnosis)},
              {"cases", Json::array()},
              {"not_predicted", Json::array()}};
  for (const analysis::CaseCompared& compared : explanation.cases)
    out["cases"].push_back(compared_json(result, compared));
  for (const analysis::CaseNotPredicted& row : explanation.not_predicted)
    out["not_predicted"].push_back({{"name", result.at(row).name}, {"why", row.why}});
  return out;
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
          {"ratio", json_number(effect->ratio)},
          {"low", json_number(effect->low)},
          {"high", json_number(effect->high)},
          {"rounds", effect->rounds},
          {"rounds_needed", effect->rounds_needed}};
}

// The name of the case that this one is compared with; null for a reference.
Json reference_of(const store::Result& result, const analysis::CaseSummary& row) {
  if (store::is_reference(row.role)) return nullptr;
  return result.case_at(result.at(row).reference).name;
}

Json case_json(const store::Result& result, const analysis::CaseSummary& row) {
  const store::ResultCase& result_case = result.at(row);
  Json out = {{"name", row.name},
              {"variable", result_case.variable},
              {"value", result_case.value},
              {"reference", reference_of(result, row)},
              {"status", store::name_of(row.status)},
              {"judgement", analysis::name_of(row.judgement)},
              {"reason", row.reason},
              {"another_training", row.another_training},
              {"trains_differently", row.trains_differently},
              {"effect", nullptr}};
  if (row.effect) out["effect"] = {{"verdict", analysis::name_of(row.effect->verdict)}};
  if (!result.points.empty()) out["rates"] = nullptr;
  if (row.rates) {
    const store::ResultPoint* point = result.find_point(row.case_index);
    out["rates"] = {{"operation", row.rates->operation},
                    {"uses", point == nullptr ? "" : point->uses},
                    {"beyond_limit", row.rates->impossible}};
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
          {"tokens_per_second", json_number(cost.tokens_per_second)},
          {"duration_s", json_number(cost.duration_s)},
          {"price", json_number(cost.price)}};
}

Json cost_json(const analysis::CostEstimate& e) {
  Json out = {{"priced", e.ranks_are_gpus ? "GPU" : "rank"},
              {"per_gpu_hour", e.cost.per_gpu_hour},
              {"currency", e.cost.currency},
              {"run_tokens", e.cost.run_tokens},
              {"measured_steps", e.steps},
              {"rests_on", "measured tokens/s; says nothing about convergence"},
              {"before", cost_of_case(e.before)},
              {"after", Json::array()}};
  for (const analysis::CaseSaving& saving : e.after) {
    Json row = cost_of_case(saving.after);
    row["gpus_recovered"] = {json_number(saving.gpus_low), json_number(saving.gpus_recovered),
                             json_number(saving.gpus_high)};
    row["saved_share"] = {json_number(saving.saved_share_low), json_number(saving.saved_share),
                          json_number(saving.saved_share_high)};
    row["saved_run"] = json_number(saving.saved_run);
    row["saved_yearly"] = json_number(saving.saved_yearly);
    out["after"].push_back(std::move(row));
  }
  return out;
}

Json level_json(const store::Result& result, const analysis::LevelFindings& level) {
  Json out = {{"reference", result.case_at(level.reference).name},     {"block_deviation", level.block_deviation},
              {"time_constant_s", json_number(level.time_constant_s)}, {"carry_over", nullptr},
              {"serial_correlation", level.serial_correlation},        {"widening", level.widening},
              {"control_is_reference", !level.baseline_left},          {"set_aside", Json::array()}};
  if (level.carry_over != analysis::no_case) out["carry_over"] = result.case_at(level.carry_over).name;
  for (const auto& row : level.set_aside) {
    out["set_aside"].push_back(
        {{"case", result.case_at(row.case_index).name}, {"set_aside", row.set_aside}, {"blocks", row.blocks}});
  }
  return out;
}

Json block_json(const store::Result& result, const analysis::CourseBlock& block) {
  Json out = {{"block", block.index},
              {"case", result.case_at(block.case_index).name},
              {"round", block.round},
              {"session", block.session},
              {"time_unix_s", block.time_unix_s},
              {"seconds", block.seconds},
              {"level_seconds", json_number(block.level_seconds)},
              {"set_aside", block.set_aside}};
  if (block.index >= result.conditions.size()) return out;
  const machine::Conditions& conditions = result.conditions[block.index];
  out["load"] = json_number(conditions.load);
  out["steal_share"] = json_number(conditions.steal_share);
  out["foreign_cores"] = json_number(conditions.foreign_cores);
  out["cpu_clock_hz"] = json_number(conditions.cpu_clock_hz);
  out["busiest_host"] = conditions.busiest_host;
  return out;
}

// One for each size of an operation.
Json levels_json(const store::Result& result, const analysis::Summary& summary) {
  Json out = Json::array();
  for (const analysis::LevelFindings& level : summary.levels) out.push_back(level_json(result, level));
  return out;
}

// The course of the machine's level and what else the machine did, block by block; null without a level.
Json machine_json(const store::Result& result) {
  const analysis::LevelCourse course = analysis::level_course(result);
  if (course.blocks.empty()) return nullptr;
  Json out = {{"drift", json_number(std::expm1(analysis::level_drift(course)))},
              {"jumps", Json::array()},
              {"blocks", Json::array()}};
  for (const analysis::LevelJump& jump : course.jumps) {
    out["jumps"].push_back({{"first_block", course.blocks[jump.first].index},
                            {"time_unix_s", course.blocks[jump.first].time_unix_s},
                            {"change", std::expm1(jump.log_change)},
                            {"standard_error", jump.standard_error}});
  }
  for (const analysis::CourseBlock& block : course.blocks) out["blocks"].push_back(block_json(result, block));
  return out;
}

Json processes_json(const store::Result& result) {
  const auto found = analysis::find_processes(result);
  if (!found) return nullptr;
  return {{"processes", found->processes}, {"shared", found->shared}, {"deviation", json_number(found->deviation)}};
}

// Null in files that do not say.
Json block_time_json(const store::Result& result) {
  const auto time = analysis::time_of_blocks(result);
  if (!time) return nullptr;
  return {{"blocks", time->blocks},     {"start_s", time->start},           {"build_s", time->build},
          {"connect_s", time->connect}, {"initialize_s", time->initialize}, {"steps_s", time->steps},
          {"end_s", time->end},         {"between_s", time->between}};
}

Json lost_json(const store::Result& result, const analysis::Summary& summary) {
  Json out = Json::array();
  for (const analysis::LostBlock& lost : summary.lost) {
    out.push_back({{"case", result.at(lost).name}, {"round", lost.round}, {"reason", lost.reason}});
  }
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

Json doctor_json(const store::Result& result) {
  Json out = Json::array();
  for (const store::ResultFinding& row : result.doctor.findings) {
    out.push_back({{"verdict", row.verdict},
                   {"check", row.check},
                   {"case", row.is_of_nodes() ? Json() : Json(result.at(row).name)},
                   {"where", row.where},
                   {"nodes", row.nodes},
                   {"evidence", row.evidence},
                   {"remedy", row.remedy},
                   {"docs", row.docs}});
  }
  return out;
}

}  // namespace

std::string show_json(const store::Result& result, const analysis::Summary& summary,
                      const std::optional<analysis::CostEstimate>& cost, const analysis::Explanation* explanation) {
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
              {"standing", result.standing.empty() ? Json() : Json(result.standing)},
              {"partial", summary.partial},
              {"unreliable", summary.unreliable},
              {"failed_cases", summary.failed_cases},
              {"lost_blocks", lost_json(result, summary)},
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
              {"noise", json_number(summary.noise)},
              {"levels", levels_json(result, summary)},
              {"machine", machine_json(result)},
              {"processes", processes_json(result)},
              {"block_time", block_time_json(result)},
              {"cases", Json::array()},
              {"warnings", summary.warnings}};
  if (!result.points.empty())
    out["average_bus_bytes_per_s"] = json_number(analysis::average_bus_bandwidth(result, summary));
  if (!result.doctor.findings.empty()) out["doctor"] = doctor_json(result);
  for (const analysis::CaseSummary& row : summary.cases) out["cases"].push_back(case_json(result, row));
  if (cost) out["cost"] = cost_json(*cost);
  if (explanation != nullptr) out["prediction"] = explanation_json(result, *explanation);
  return json_text(out);
}

}  // namespace harness::report
