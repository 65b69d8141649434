#include "cli/plan_json.h"

#include <nlohmann/json.hpp>

#include "plan/fit.h"
#include "plan/prepare.h"

namespace harness::cli {
namespace {

using Json = nlohmann::ordered_json;

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

Json json_of(const PredictedCase& predicted, const plan::PlannedCase& planned, double peak_flops) {
  const sim::Prediction& prediction = *predicted.step;
  const program::StepSplit& split = prediction.split;
  Json out{{"predicted_step_seconds", prediction.step_s},
           {"predicted_parts",
            {{"compute_seconds", split.compute_s},
             {"exposed_communication_seconds", split.exposed_s},
             {"idle_seconds", split.idle_s}}},
           {"predicted_overlapped_communication_seconds", split.overlapped_s},
           {"predicted_critical_path", json_of(prediction.critical_path)}};
  const double flop = planned.survey.flop.model;
  if (peak_flops > 0 && flop > 0)
    out["predicted_mfu"] = flop / (prediction.step_s * planned.layout.ranks() * peak_flops);
  if (prediction.jittered) {
    out["predicted_with_jitter"] = {{"mean_step_seconds", prediction.jittered->mean_s()},
                                    {"deviation_seconds", prediction.jittered->deviation_s()},
                                    {"draws", prediction.jittered->step_s.size()}};
  }
  const sim::Trust& trust = predicted.trust;
  if (trust.expected_error > 0) out["expected_error"] = trust.expected_error;
  if (predicted.change) {
    out["predicted_change"] = *predicted.change;
    if (trust.expected_change_error > 0) {
      out["expected_change_error"] = trust.expected_change_error;
      out["too_close_to_call"] = sim::too_close_to_call(*predicted.change, trust);
    }
  }
  if (!trust.warnings.empty()) out["warnings"] = trust.warnings;
  return out;
}

}  // namespace

std::string plan_json(const plan::Plan& plan, const std::vector<PredictedCase>& predicted) {
  const config::Experiment& e = plan.experiment;
  Json out{{"name", e.name}, {"backend", config::name_of(e.backend)}, {"ranks", plan.ranks}};
  if (config::traits_of(e.backend).predicts()) {
    out["calibration"] = {
        {"file", e.calibration->file}, {"name", e.calibration->name}, {"source", e.calibration->source}};
    out["hardware"] = e.hardware->name;
  }
  Json& cases = out["cases"] = Json::array();
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    const plan::PlannedCase& planned = plan.cases[i];
    Json row{{"name", planned.name}, {"variable", planned.variable}, {"value", planned.value}};
    if (!planned.is_possible()) {
      row["impossible"] = planned.impossible;
      cases.push_back(std::move(row));
      continue;
    }
    row["layout"] = program::text_of(planned.layout);
    row["micro_batches"] = planned.micro_batches;
    row["memory_bytes"] = plan::planned_memory_bytes(e.backend, planned);
    row["tokens_per_step"] = planned.survey.tokens_per_step;
    row["model_flop"] = planned.survey.flop.model;
    if (!planned.notes.empty()) row["notes"] = planned.notes;
    if (!predicted.empty() && predicted[i].step) {
      const double peak = plan::configured_peak(e, planned.settings.precision).flops;
      row.update(json_of(predicted[i], planned, peak));
    } else if (!predicted.empty()) {
      row["not_predicted"] = predicted[i].unknown;
    }
    cases.push_back(std::move(row));
  }
  return out.dump(2) + "\n";
}

}  // namespace harness::cli
