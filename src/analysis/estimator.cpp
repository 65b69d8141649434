#include "analysis/estimator.h"

#include <algorithm>
#include <array>

#include "analysis/level_estimator.h"
#include "analysis/paired_estimator.h"
#include "analysis/predicted_estimator.h"
#include "base/error.h"

namespace harness::analysis {
namespace {

struct Row {
  std::string_view name;
  EstimatorKind kind;
  Estimator estimator;
};

constexpr std::array rows{
    Row{"level", EstimatorKind::level, estimate_level},
    Row{"pairs", EstimatorKind::pairs, estimate_trimmed_pairs},
    Row{"sign", EstimatorKind::sign, estimate_median_pairs},
    Row{"predicted", EstimatorKind::predicted, estimate_predicted},
};

}  // namespace

std::vector<CaseWeight> contrast_of(const Question& question, std::int32_t baseline) {
  if (!question.contrast.empty()) return question.contrast;
  return {{question.case_index, 1}, {baseline, -1}};
}

Estimator estimator_of(EstimatorKind kind) {
  return std::ranges::find(rows, kind, &Row::kind)->estimator;
}

EstimatorKind estimator_named(std::string_view name) {
  const auto* found = std::ranges::find(rows, name, &Row::name);
  if (found == rows.end())
    fail(
        "there is no interval \"{}\" here; allowed: level, pairs, sign. A file that declares another one was made by a "
        "newer harness: use that",
        name);
  return found->kind;
}

std::string_view name_of(EstimatorKind kind) {
  return std::ranges::find(rows, kind, &Row::kind)->name;
}

}  // namespace harness::analysis
