#include "explain/compare.h"

#include <algorithm>
#include <functional>

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

}  // namespace harness::explain
