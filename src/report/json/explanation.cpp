#include "report/json/parts.h"
#include "report/sections.h"

namespace harness::report {
namespace {

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

}  // namespace

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

}  // namespace harness::report
