#include <cmath>
#include <nlohmann/json.hpp>

#include "report/headline.h"
#include "report/metrics.h"
#include "report/show.h"

namespace harness::report {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}
Json effect_json(const std::optional<analysis::Effect>& effect) {
  if (!effect) return nullptr;
  return {{"verdict", analysis::name_of(effect->verdict)},
          {"ratio", number(effect->ratio)},
          {"low", number(effect->low)},
          {"high", number(effect->high)},
          {"rounds", effect->rounds},
          {"rounds_needed", effect->rounds_needed}};
}

Json number(const Metric& metric, double value) {
  if (!std::isfinite(value)) return nullptr;
  return metric.unit == Unit::count ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

// "effect.ratio" becomes the key "ratio" of the object "effect".
void add(const Metric& metric, const store::Result& result, const analysis::CaseSummary& row, Json& out) {
  const std::string key(metric.key);
  const std::optional<double> value = metric.value(result, row);
  const Json json = value ? number(metric, *value) : Json(nullptr);
  const std::size_t dot = key.find('.');
  if (dot == std::string::npos) {
    out[key] = json;
  } else if (Json& object = out[key.substr(0, dot)]; object.is_object()) {
    object[key.substr(dot + 1)] = json;
  }
}

Json case_json(const store::Result& result, const analysis::CaseSummary& row) {
  const store::ResultCase& result_case = result.at(row);
  Json out = {{"name", row.name},
              {"variable", result_case.variable},
              {"value", result_case.value},
              {"status", store::name_of(row.status)},
              {"judgement", analysis::name_of(row.judgement)},
              {"reason", row.reason},
              {"effect", nullptr}};
  if (row.effect) out["effect"] = {{"verdict", analysis::name_of(row.effect->verdict)}};
  if (!result.points.empty()) out["rates"] = nullptr;
  if (row.rates) out["rates"] = {{"operation", row.rates->operation}, {"beyond_limit", row.rates->impossible}};
  for (const Metric& metric : case_metrics()) {
    if (!result.points.empty() || !metric.key.starts_with("rates.")) add(metric, result, row, out);
  }
  Json settings = Json::object();
  for (const std::string& variable : result.variables) settings[variable] = result.setting(result_case, variable);
  out["settings"] = std::move(settings);
  return out;
}

Json cost_of_case(const analysis::CaseCost& cost) {
  return {{"name", cost.name},
          {"ranks", cost.ranks},
          {"tokens_per_second", number(cost.tokens_per_second)},
          {"duration_s", number(cost.duration_s)},
          {"price", number(cost.price)}};
}

Json cost_json(const analysis::CostEstimate& e) {
  Json out = {{"per_gpu_hour", e.cost.per_gpu_hour},
              {"currency", e.cost.currency},
              {"run_tokens", e.cost.run_tokens},
              {"measured_steps", e.steps},
              {"rests_on", "measured tokens/s; says nothing about convergence"},
              {"before", cost_of_case(e.before)},
              {"after", Json::array()}};
  for (const analysis::CaseSaving& saving : e.after) {
    Json row = cost_of_case(saving.after);
    row["gpus_recovered"] = {number(saving.gpus_low), number(saving.gpus_recovered), number(saving.gpus_high)};
    row["saved_share"] = {number(saving.saved_share_low), number(saving.saved_share), number(saving.saved_share_high)};
    row["saved_run"] = number(saving.saved_run);
    row["saved_yearly"] = number(saving.saved_yearly);
    out["after"].push_back(std::move(row));
  }
  return out;
}

Json level_json(const store::Result& result, const std::optional<analysis::LevelFindings>& level) {
  if (!level) return nullptr;
  Json out = {{"block_deviation", level->block_deviation},
              {"time_constant_s", number(level->time_constant_s)},
              {"carry_over", nullptr},
              {"serial_correlation", level->serial_correlation},
              {"widening", level->widening},
              {"control_is_reference", !level->baseline_left},
              {"set_aside", Json::array()}};
  if (level->carry_over != analysis::no_case) out["carry_over"] = result.case_at(level->carry_over).name;
  for (const auto& row : level->set_aside) {
    out["set_aside"].push_back(
        {{"case", result.case_at(row.case_index).name}, {"set_aside", row.set_aside}, {"blocks", row.blocks}});
  }
  return out;
}

Json looks_json(const analysis::Summary& summary) {
  Json out = Json::array();
  for (const analysis::Look& look : summary.looks) {
    if (look.share == 1) continue;  // the only one, at the end
    out.push_back({{"rounds", look.rounds}, {"share", look.share}});
  }
  return out;
}

}  // namespace

std::string show_json(const store::Result& result, const analysis::Summary& summary,
                      const std::optional<analysis::CostEstimate>& cost) {
  Json out = {{"schema", "harness-show"},
              {"schema_version", 1},
              {"headline", headline(result, summary)},
              {"name", result.name},
              {"backend", result.backend},
              {"created", result.created},
              {"run_uuid", result.run_uuid},
              {"tool_version", result.tool_version},
              {"state", store::name_of(result.state)},
              {"partial", summary.partial},
              {"unreliable", summary.unreliable},
              {"failed_cases", summary.failed_cases},
              {"ranks", result.ranks},
              {"nodes", result.nodes},
              {"sessions", result.sessions},
              {"rounds", result.rounds},
              {"warmup_steps", result.warmup_steps},
              {"steps", result.steps},
              {"seed", result.seed},
              {"smallest_effect", result.smallest_effect},
              {"interval", std::string(analysis::name_of(summary.estimator))},
              {"interval_declared", summary.declared},
              {"looks", looks_json(summary)},
              {"model",
               {{"name", result.model_name},
                {"layers", result.layers},
                {"hidden", result.hidden},
                {"heads", result.heads},
                {"vocab", result.vocab},
                {"sequence", result.sequence}}},
              {"flop_formula", result.flop_formula},
              {"peak_source", result.peak_source},
              {"control", effect_json(summary.control)},
              {"noise", number(summary.noise)},
              {"level", level_json(result, summary.level)},
              {"cases", Json::array()},
              {"warnings", summary.warnings}};
  for (const analysis::CaseSummary& row : summary.cases) out["cases"].push_back(case_json(result, row));
  if (cost) out["cost"] = cost_json(*cost);
  // Texts come from the outside (host names, stderr of workers): what is not UTF-8 in them must not lose the rest.
  return out.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace harness::report
