#include "analysis/questions.h"

#include <algorithm>
#include <map>
#include <utility>

#include "analysis/estimator.h"
#include "analysis/statistics.h"
#include "analysis/summary.h"

namespace harness::analysis {

namespace {

// The work that a case's step does, in the unit that cases are compared by: tokens; bytes on the bus of a collective;
// FLOP of a rank. 0: not known.
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

std::vector<SweepBlocks> comparable_blocks(const store::Result& result) {
  if (result.baseline() == nullptr) return {};
  std::vector<SweepBlocks> sweeps;
  std::map<std::int32_t, std::size_t> place_of;  // in `sweeps`, by reference
  for (std::int32_t i = 0; i < result.case_count(); ++i) {
    if (!store::is_reference(result.case_at(i).role())) continue;
    place_of.emplace(i, sweeps.size());
    sweeps.push_back({{}, i});
  }
  for (std::int32_t i = 0; i < result.case_count(); ++i) {
    const auto place = place_of.find(result.case_at(i).reference);
    if (place != place_of.end() && result.case_at(i).role() == store::CaseRole::control)
      sweeps[place->second].control = i;
  }
  for (FinishedBlock& block : finished_blocks(result)) {
    const std::int32_t reference = result.at(block).reference;
    const auto place = place_of.find(reference);
    if (place == place_of.end()) continue;
    const double before = work_of(result, reference), after = work_of(result, block.case_index);
    if (before > 0 && after > 0) block.seconds *= before / after;
    sweeps[place->second].blocks.push_back(block);
  }
  return sweeps;
}

int declared_comparisons(const store::Result& result) {
  const auto changes = std::ranges::count_if(result.cases, [](const store::ResultCase& planned) {
    return planned.role() == store::CaseRole::change && planned.status != store::CaseStatus::impossible;
  });
  return static_cast<int>(changes);
}

std::vector<Question> questions_of(const store::Result& result) {
  const double family = family_alpha(declared_comparisons(result), result.confidence);
  const auto is_control = [](const store::ResultCase& row) { return row.role() == store::CaseRole::control; };
  const double of_controls =
      family_alpha(static_cast<int>(std::ranges::count_if(result.cases, is_control)), result.confidence);
  std::vector<Question> questions;
  for (std::int32_t i = 0; i < result.case_count(); ++i) {
    questions.push_back({i, is_control(result.case_at(i)) ? of_controls : family, result.smallest_effect});
  }
  return questions;
}

std::vector<std::size_t> questions_about(const store::Result& result, std::int32_t reference,
                                         std::span<const Question> questions) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    if (result.case_at(questions[i].case_index).reference == reference) places.push_back(i);
  }
  return places;
}

}  // namespace harness::analysis
