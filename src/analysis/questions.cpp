#include "analysis/questions.h"

#include <algorithm>
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
  const store::ResultCase* baseline = result.baseline();
  if (baseline == nullptr) return {};
  SweepBlocks sweep{{}, result.index_of(*baseline)}, alone{{}, no_case};
  if (const store::ResultCase* own = result.find_case(store::alone_name)) alone.baseline = result.index_of(*own);
  const store::ResultCase* control = result.find_case(store::control_name);
  if (control != nullptr) sweep.control = result.index_of(*control);
  sweep.pools_are_processes = shares_processes(result);
  const double before = work_of(result, sweep.baseline);
  for (FinishedBlock& block : finished_blocks(result)) {
    const double after = work_of(result, block.case_index);
    if (before > 0 && after > 0) block.seconds *= before / after;
    (result.is_alone(block.case_index) ? alone : sweep).blocks.push_back(block);
  }
  if (alone.baseline == no_case) return {std::move(sweep)};
  return {std::move(sweep), std::move(alone)};
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

std::vector<std::size_t> questions_about(const store::Result& result, std::int32_t reference,
                                         std::span<const Question> questions) {
  const bool alone = result.is_alone(reference);
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    if (result.is_alone(questions[i].case_index) == alone) places.push_back(i);
  }
  return places;
}

Estimate cost_of_a_process(std::span<const SweepBlocks> sweeps, double coverage) {
  if (sweeps.size() < 2) return {};
  const SweepBlocks &shared = sweeps[0], &alone = sweeps[1];
  SweepBlocks both{shared.blocks, shared.baseline};
  both.blocks.insert(both.blocks.end(), alone.blocks.begin(), alone.blocks.end());
  const Question question{.case_index = alone.baseline, .alpha = family_alpha(1, coverage)};
  Estimate cost = estimate_mean_pairs(both, std::span(&question, 1)).answers[0];
  cost.rounds_needed = 0;  // it settles nothing
  return cost;
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
