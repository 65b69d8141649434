#include <utility>

#include "cli/plan_document.h"
#include "config/backend.h"
#include "plan/prepare.h"
#include "report/json.h"

namespace harness::cli {
namespace {

using Json = report::Json;

// Seconds by part; what is not on the path is left out.
Json json_of(const sim::CriticalPath& path) {
  Json out = Json::object();
  for (const Part part : all_parts) {
    if (path[part] > 0) out[fmt::format("{}_seconds", key_of(part))] = sim::seconds_of(path[part]);
  }
  out["slowed_seconds"] = sim::seconds_of(path.slowed);
  out["host_seconds"] = sim::seconds_of(path.host);
  return out;
}

Json json_of(const PredictedCase& predicted) {
  const sim::Prediction& prediction = *predicted.step;
  const program::StepSplit& split = prediction.split;
  Json out{{"predicted_step_seconds", prediction.step_s},
           {"predicted_parts",
            {{"compute_seconds", split.compute_s},
             {"exposed_communication_seconds", split.exposed_s},
             {"idle_seconds", split.idle_s}}},
           {"predicted_overlapped_communication_seconds", split.overlapped_s},
           {"predicted_critical_path", json_of(prediction.critical_path)}};
  if (predicted.mfu) out["predicted_mfu"] = *predicted.mfu;
  if (predicted.change) {
    out["predicted_change"] = *predicted.change;
    out["too_close_to_call"] = predicted.too_close_to_call;
  }
  put_trust(predicted.trust, predicted.change.has_value(), out);
  return out;
}

Json head_of(const plan::Plan& plan, const char* schema) {
  const config::Experiment& e = plan.experiment;
  Json out{{"schema", schema},
           {"schema_version", 1},
           {"name", e.name},
           {"backend", config::name_of(e.backend)},
           {"ranks", plan.ranks}};
  if (config::traits_of(e.backend).predicts()) {
    out["calibration"] = {
        {"file", e.calibration->file}, {"name", e.calibration->name}, {"source", e.calibration->source}};
    if (!e.names_calibration) out["calibration"]["chosen_for"] = config::usual_calibration(e.baseline).why;
    out["hardware"] = e.hardware->name;
  }
  return out;
}

// For a possible case.
Json facts_of(const plan::PlannedCase& planned, const config::Experiment& experiment) {
  return {{"layout", program::text_of(planned.layout)},
          {"micro_batches", planned.micro_batches},
          {"memory_bytes", plan::planned_memory_bytes(experiment, planned)},
          {"tokens_per_step", planned.survey.tokens_per_step},
          {"model_flop", planned.survey.flop.model}};
}

Json json_of(const RankedCombination& combination, const config::Experiment& experiment) {
  Json settings = Json::object();
  for (const auto& [variable, value] : combination.settings) settings[variable] = value;
  Json out{
      {"settings", std::move(settings)}, {"distance", combination.distance}, {"told_apart", combination.is_told_apart}};
  out.update(facts_of(combination.planned, experiment));
  out.update(json_of(combination.predicted));
  return out;
}

}  // namespace

void put_trust(const sim::Trust& trust, bool of_change, report::Json& out) {
  const auto put = [&](const std::string& key, const std::optional<config::Errors>& error) {
    if (!error) return;
    out[key] = error->median;
    out[key + "_90"] = error->nine_of_ten;
  };
  put("expected_error", trust.errors.step);
  if (of_change) put("expected_change_error", trust.errors.change);
  if (!trust.warnings.empty()) out["warnings"] = trust.warnings;
}

std::string plan_json(const plan::Plan& plan, const std::vector<PredictedCase>& predicted) {
  Json out = head_of(plan, "harness-plan");
  Json& cases = out["cases"] = Json::array();
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    const plan::PlannedCase& planned = plan.cases[i];
    Json row{{"name", planned.name}, {"variable", planned.variable}, {"value", planned.value}};
    if (!planned.is_possible()) {
      row["impossible"] = planned.impossible;
      cases.push_back(std::move(row));
      continue;
    }
    row.update(facts_of(planned, plan.experiment));
    if (!planned.notes.empty()) row["notes"] = planned.notes;
    if (!predicted.empty() && predicted[i].step) {
      row.update(json_of(predicted[i]));
    } else if (!predicted.empty()) {
      row["not_predicted"] = predicted[i].unknown;
    }
    cases.push_back(std::move(row));
  }
  return report::json_text(out);
}

std::string best_json(const plan::Plan& plan, const Best& best) {
  Json out = head_of(plan, "harness-plan-best");
  Json& variables = out["variables"] = Json::object();
  for (const plan::Values& v : best.variables) variables[v.variable->name] = v.values;
  out["left_out"] = best.left_out;
  out["combinations"] = best.combinations;
  out["all"] = best.all;
  out["predicted"] = best.predicted;
  out["alike"] = best.alike;
  out["same_time"] = best.same_time;
  out["not_told_apart"] = best.close;
  Json& refused = out["refused"] = Json::array();
  for (const auto& [reason, number] : best.refused) refused.push_back({{"reason", reason}, {"number", number}});
  if (best.baseline) out["baseline"] = json_of(*best.baseline, plan.experiment);
  Json& fastest = out["fastest"] = Json::array();
  for (const RankedCombination& combination : best.fastest) fastest.push_back(json_of(combination, plan.experiment));
  return report::json_text(out);
}

}  // namespace harness::cli
