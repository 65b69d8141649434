#include <cmath>
#include <nlohmann/json.hpp>

#include "report/formats.h"
#include "report/words.h"

namespace harness {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}
Json number(const std::optional<double>& value) {
  return value ? number(*value) : Json(nullptr);
}

Json effect_json(const std::optional<Effect>& effect) {
  if (!effect) return nullptr;
  return {{"verdict", name_of(effect->verdict)},
          {"ratio", number(effect->ratio)},
          {"low", number(effect->low)},
          {"high", number(effect->high)},
          {"rounds", effect->rounds},
          {"rounds_needed", effect->rounds_needed}};
}

Json rates_json(const std::optional<Rates>& rates) {
  if (!rates) return nullptr;
  return {{"operation", rates->operation},
          {"seconds", number(rates->operation_seconds)},
          {"bytes", number(rates->bytes)},
          {"algorithm_bytes_per_s", number(rates->algorithm_bytes_per_s)},
          {"bus_bytes_per_s", number(rates->bus_bytes_per_s)},
          {"limit_bytes_per_s", number(rates->limit_bytes_per_s)},
          {"beyond_limit", rates->impossible}};
}

Json case_json(const Result& result, const CaseSummary& one) {
  const ResultCase& row = result.at(one);
  const bool measured = one.blocks > 0;
  const auto if_measured = [&](double value) { return measured ? number(value) : Json(nullptr); };
  Json settings = Json::object();
  for (std::size_t v = 0; v < result.variables.size(); ++v) settings[result.variables[v]] = row.settings[v];
  return {{"name", one.name},
          {"variable", row.variable},
          {"value", row.value},
          {"status", name_of(one.status)},
          {"reason", one.reason},
          {"blocks", one.blocks},
          {"step_seconds", number(one.step_seconds)},
          {"tokens_per_second", if_measured(one.tokens_per_second)},
          {"flops_per_rank", if_measured(one.flops_per_rank)},
          {"mfu", number(one.mfu)},
          {"mfu_noncausal", number(one.mfu_noncausal)},
          {"hfu", number(one.hfu)},
          {"peak_memory_bytes", if_measured(one.peak_memory_bytes)},
          {"planned_memory_bytes", number(row.planned_memory_bytes)},
          {"effect", effect_json(one.effect)},
          {"first_loss", number(one.first_loss)},
          {"last_loss", number(one.last_loss)},
          {"gpu_utilisation", number(one.gpu_utilisation)},
          {"sm_clock_hz", number(one.sm_clock_hz)},
          {"power_w", number(one.power_w)},
          {"tokens_per_joule", number(one.tokens_per_joule)},
          {"ranks_used", row.ranks},
          {"tensor_parallel", row.tensor_parallel},
          {"pipeline_parallel", row.pipeline_parallel},
          {"data_parallel", row.data_parallel},
          {"micro_batches", row.micro_batches},
          {"tokens_per_step", row.tokens_per_step},
          {"model_flop_per_step", row.model_flop_per_step},
          {"noncausal_flop_per_step", row.noncausal_flop_per_step},
          {"hardware_flop_per_step", row.hardware_flop_per_step},
          {"peak_flops_per_rank", row.peak_flops_per_rank > 0 ? Json(row.peak_flops_per_rank) : Json(nullptr)},
          {"settings", std::move(settings)}};
}

Json cost_of_case(const CaseCost& one) {
  return {{"name", one.name},
          {"ranks", one.ranks},
          {"tokens_per_second", number(one.tokens_per_second)},
          {"duration_s", number(one.duration_s)},
          {"price", number(one.price)}};
}

Json cost_json(const CostEstimate& e) {
  Json out = {{"per_gpu_hour", e.cost.per_gpu_hour},
              {"currency", e.cost.currency},
              {"run_tokens", e.cost.run_tokens},
              {"measured_steps", e.steps},
              {"rests_on", "measured tokens/s; says nothing about convergence"},
              {"before", cost_of_case(e.before)},
              {"after", Json::array()}};
  for (const CaseSaving& one : e.after) {
    Json row = cost_of_case(one.after);
    row["gpus_recovered"] = {number(one.gpus_low), number(one.gpus_recovered), number(one.gpus_high)};
    row["saved_share"] = {number(one.saved_share_low), number(one.saved_share), number(one.saved_share_high)};
    row["saved_run"] = number(one.saved_run);
    row["saved_yearly"] = number(one.saved_yearly);
    out["after"].push_back(std::move(row));
  }
  return out;
}

}  // namespace

std::string show_json(const Result& result, const Summary& summary, const std::optional<CostEstimate>& cost) {
  Json out = {{"schema", "harness-show"},
              {"schema_version", 1},
              {"headline", headline(result, summary)},
              {"name", result.name},
              {"backend", result.backend},
              {"created", result.created},
              {"run_uuid", result.run_uuid},
              {"tool_version", result.tool_version},
              {"state", name_of(result.state)},
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
              {"cases", Json::array()},
              {"warnings", summary.warnings}};
  for (const auto& one : summary.cases) {
    out["cases"].push_back(case_json(result, one));
    if (!result.points.empty()) out["cases"].back()["rates"] = rates_json(one.rates);
  }
  if (cost) out["cost"] = cost_json(*cost);
  // Texts come from the outside (host names, stderr of workers): what is not UTF-8 in them must not lose the rest.
  return out.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace harness
