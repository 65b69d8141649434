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
  const int rungs = static_cast<int>(result.ladder.size());
  return static_cast<int>(changes) + 2 * std::max(rungs - 1, 0);
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

namespace {

// The weakest evidence of all cases in a contrast: its verdict cannot be better founded than that of its worst case.
Evidence weakest(const std::vector<CaseWeight>& contrast, std::span<const Evidence> evidence) {
  Evidence weakest{.role = store::CaseRole::change};
  for (const CaseWeight& term : contrast) {
    const Evidence& of = evidence[static_cast<std::size_t>(term.case_index)];
    if (of.status != store::CaseStatus::ok) weakest.status = of.status;
    weakest.measured = weakest.measured && of.measured;
    weakest.honoured = weakest.honoured && of.honoured;
    weakest.within_limit = weakest.within_limit && of.within_limit;
    weakest.trains_alike = weakest.trains_alike && of.trains_alike;
    weakest.predicted = weakest.predicted || of.predicted;
  }
  return weakest;
}

}  // namespace

std::vector<Question> ladder_questions(const store::Result& result, double alpha) {
  std::vector<Question> questions;
  const store::ResultCase* baseline = result.baseline();
  if (baseline == nullptr) return questions;
  for (std::size_t i = 1; i < result.ladder.size(); ++i) {
    const store::ResultRung& rung = result.ladder[i];
    const std::int32_t before = result.ladder[i - 1].together;
    const std::vector<CaseWeight> on_top{{rung.together, 1}, {before, -1}};
    std::vector<CaseWeight> interaction = on_top;
    interaction.push_back({rung.alone, -1});
    interaction.push_back({result.index_of(*baseline), 1});
    questions.push_back({rung.together, alpha, result.smallest_effect, on_top});
    questions.push_back({rung.together, alpha, result.smallest_effect, interaction});
  }
  return questions;
}

std::vector<LadderRung> ladder_of(const store::Result& result, std::span<const Estimate> answers,
                                  std::span<const Evidence> evidence) {
  const std::vector<Question> questions = ladder_questions(result, 1 - result.confidence);
  std::vector<LadderRung> rungs;
  for (const store::ResultRung& rung : result.ladder) {
    rungs.push_back(
        {.name = rung.name, .alone = rung.alone, .together = rung.together, .on_top = {}, .interaction = {}});
  }
  for (std::size_t i = 0; i + 1 < answers.size() && i + 1 < questions.size(); i += 2) {
    LadderRung& rung = rungs[i / 2 + 1];
    rung.on_top = effect_of(answers[i], result.smallest_effect, weakest(questions[i].contrast, evidence));
    rung.interaction = effect_of(answers[i + 1], result.smallest_effect, weakest(questions[i + 1].contrast, evidence));
  }
  return rungs;
}

}  // namespace harness::analysis
