#include "analysis/ladder.h"

#include "analysis/summary.h"

namespace harness::analysis {
namespace {

// What may be said of several cases together is what may be said of the worst of them.
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
