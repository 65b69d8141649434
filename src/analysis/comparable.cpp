#include "analysis/comparable.h"

#include <algorithm>

#include "analysis/statistics.h"

namespace harness::analysis {
namespace {

// What a case's step gets done, in the unit that cases are compared by: tokens; bytes on the bus of a collective; FLOP
// of a rank. 0: not known.
double work_of(const store::Result& result, std::int32_t case_index) {
  const store::ResultCase& result_case = result.case_at(case_index);
  if (result_case.tokens_per_step > 0) return result_case.tokens_per_step;
  const store::ResultPoint* point = result.find_point(case_index);
  if (point == nullptr) return 0;
  const auto times = static_cast<double>(point->repetitions);
  if (point->bus_factor > 0) return times * point->bytes * point->bus_factor;
  return result_case.model_flop_per_step / result_case.ranks;
}

}  // namespace

SweepBlocks comparable_blocks(const store::Result& result) {
  const store::ResultCase* baseline = result.baseline();
  if (baseline == nullptr) return {};
  SweepBlocks sweep{finished_blocks(result), result.index_of(*baseline)};
  const store::ResultCase* control = result.find_case(store::control_name);
  if (control != nullptr) sweep.control = result.index_of(*control);
  sweep.pools_are_processes = shares_processes(result);
  const double before = work_of(result, sweep.baseline);
  for (FinishedBlock& block : sweep.blocks) {
    const double after = work_of(result, block.case_index);
    if (before > 0 && after > 0) block.seconds *= before / after;
  }
  return sweep;
}

int declared_comparisons(const store::Result& result) {
  const auto changes = std::ranges::count_if(result.cases, [](const store::ResultCase& planned) {
    return planned.role() == store::CaseRole::change && planned.status != store::CaseStatus::impossible;
  });
  const int rungs = static_cast<int>(result.ladder.size());
  return static_cast<int>(changes) + 2 * std::max(rungs - 1, 0);
}

std::vector<Question> questions_of(const store::Result& result) {
  const double family = family_alpha(declared_comparisons(result), result.confidence);
  std::vector<Question> questions;
  for (std::int32_t i = 0; i < result.case_count(); ++i) {
    const bool is_control = result.case_at(i).role() == store::CaseRole::control;
    questions.push_back({i, is_control ? family_alpha(1, result.confidence) : family, result.smallest_effect});
  }
  return questions;
}

}  // namespace harness::analysis
