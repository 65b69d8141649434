#include "explain/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>

#include "analysis/breakdown.h"
#include "base/error.h"
#include "explain/diagnose.h"
#include "explain/picture.h"
#include "explain/reference.h"

namespace harness::explain {
namespace {

analysis::KindCompared& row_of(const analysis::KindTime& time, std::vector<analysis::KindCompared>& rows) {
  const auto known = std::ranges::find_if(rows, [&](const analysis::KindCompared& row) {
    return row.kind == time.kind && row.group == time.group && row.recomputed == time.recomputed;
  });
  if (known != rows.end()) return *known;
  return rows.emplace_back(analysis::KindCompared{time.kind, time.group, time.recomputed});
}

}  // namespace

analysis::CaseCompared compare_with_prediction(const analysis::Breakdown& measured,
                                               const analysis::Breakdown& predicted) {
  analysis::CaseCompared compared;
  compared.case_index = measured.case_index;
  compared.measured_s = measured.step_s;
  compared.predicted_s = predicted.step_s;
  for (const analysis::KindTime& time : measured.kinds) {
    analysis::KindCompared& row = row_of(time, compared.kinds);
    row.measured_takes_s = time.takes_s;
    row.measured_owns_s = time.owns_s;
  }
  for (const analysis::KindTime& time : predicted.kinds) {
    analysis::KindCompared& row = row_of(time, compared.kinds);
    row.predicted_takes_s = time.takes_s;
    row.predicted_owns_s = time.owns_s;
  }
  for (const Part part : all_parts) {
    if (is_computation(part) || is_exposed_communication(part)) continue;
    if (!measured[part] && !predicted[part]) continue;
    compared.parts.push_back({part, measured[part].value_or(0), predicted[part].value_or(0)});
  }
  std::ranges::stable_sort(compared.kinds, std::ranges::greater(), &analysis::KindCompared::excess_s);
  std::ranges::stable_sort(compared.parts, std::ranges::greater(), &analysis::PartCompared::excess_s);
  return compared;
}

namespace {

// A dozen simulations with a rank each where a fault breaks the symmetry: minutes beyond this.
constexpr std::int32_t most_diagnosed_ranks = 4096;

void diagnose_baseline(const CaseModel& model, const analysis::CaseBreakdown& measured, const store::Result& result,
                       analysis::Explanation& found) {
  found.why_no_diagnosis.clear();
  if (result.ranks > most_diagnosed_ranks) {
    found.why_no_diagnosis = fmt::format("for more than {} ranks it would take minutes", most_diagnosed_ranks);
    return;
  }
  try {
    found.diagnosis = diagnose(model, picture_of(result, measured), result);
    found.diagnosis->case_index = measured.case_index;
  } catch (const Error& why) {
    found.why_no_diagnosis = why.what();
  }
}

void explain_case(const analysis::CaseBreakdown& measured, const store::Result& result, const Reference& reference,
                  analysis::Explanation& found) {
  const bool is_baseline = result.at(measured).role() == store::CaseRole::baseline;
  try {
    const CaseModel model(reference, result, measured.case_index);
    const analysis::CaseBreakdown predicted = analysis::break_down(model.predict({})).front();
    found.cases.push_back(compare_with_prediction(measured.mean, predicted.mean));
    if (is_baseline) diagnose_baseline(model, measured, result, found);
  } catch (const Error& why) {
    found.not_predicted.push_back({measured.case_index, why.what()});
    if (is_baseline) found.why_no_diagnosis = "the baseline has no prediction";
  }
}

void explain_cases(const store::Result& result, const Reference& reference, analysis::Explanation& found) {
  found.why_no_diagnosis = "the baseline has no profiled step";
  for (const analysis::CaseBreakdown& measured : analysis::break_down(result))
    explain_case(measured, result, reference, found);
  if (!found.cases.empty()) return;
  found.why_none = found.not_predicted.empty() ? "no case has a profiled step" : found.not_predicted.front().why;
  found.why_no_diagnosis.clear();
}

}  // namespace

analysis::Explanation explain(const store::Result& result) {
  analysis::Explanation found;
  found.of_prediction = config::traits_of(result.backend).predicts();
  try {
    const Reference reference = reference_of(result);
    found.hardware = reference.experiment.hardware->name;
    found.calibration = reference.experiment.calibration->name;
    explain_cases(result, reference, found);
  } catch (const Error& error) {
    found.why_none = error.what();
  }
  return found;
}

}  // namespace harness::explain
