#include "explain/explain.h"

#include "analysis/breakdown.h"
#include "base/error.h"
#include "explain/compare.h"
#include "explain/reference.h"

namespace harness::explain {
namespace {

void explain_cases(const store::Result& result, const Reference& reference, analysis::Explanation& found) {
  for (const analysis::CaseBreakdown& measured : analysis::break_down(result)) {
    try {
      const CaseModel model(reference, result, measured.case_index);
      const analysis::CaseBreakdown predicted = analysis::break_down(model.predict({})).front();
      found.cases.push_back(compare_with_prediction(measured.mean, predicted.mean));
    } catch (const Error& error) {
      found.why_none = error.what();
    }
  }
  if (!found.cases.empty()) found.why_none.clear();
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
