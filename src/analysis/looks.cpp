#include "analysis/looks.h"

#include <algorithm>
#include <set>

#include "analysis/estimator.h"
#include "analysis/verdict.h"
#include "base/error.h"
#include "base/text.h"

namespace harness::analysis {
namespace {

// "5,8,12"
std::vector<int> read_rounds(const std::string& list, std::string_view what) {
  const auto refuse = [&] { fail("the file declares {} {}, which are no ascending rounds", what, quote(list)); };
  std::vector<int> all;
  if (list.empty()) return all;
  for (const std::string_view word : split(list, ',')) {
    const int rounds = number_in<int>(word).value_or(0);
    if (rounds <= (all.empty() ? 0 : all.back())) refuse();
    all.push_back(rounds);
  }
  return all;
}

// The totals that were declared, one after the other: the last is the present one.
std::vector<int> totals_of(const store::Result& result) {
  std::vector<int> totals = read_rounds(result.extended, "the extended rounds");
  totals.push_back(declared_rounds(result));
  return totals;
}

bool is_settled(const Estimate& answer, double smallest_effect) {
  const Verdict verdict = verdict_of(answer.log_ratio, smallest_effect);
  return moved(verdict) || verdict == Verdict::same;
}

}  // namespace

std::vector<int> declared_looks(const store::Result& result) {
  return read_rounds(result.looks, "the looks");
}

int declared_rounds(const store::Result& result) {
  return result.looks.empty() ? result.rounds : declared_looks(result).back();
}

int rounds_over(const store::Result& result) {
  int last_measured = -1;
  for (const store::ResultBlock& block : result.blocks) {
    if (block.status == store::BlockStatus::ok) last_measured = std::max(last_measured, block.round);
  }
  return std::min(first_open_round(result), last_measured + 1);
}

double error_bound(const store::Result& result) {
  const std::vector<int> totals = totals_of(result);
  double times = 1;
  for (std::size_t i = 1; i < totals.size(); ++i) times += static_cast<double>(totals[i] - totals[i - 1]) / totals[i];
  return (1 - result.confidence) * times;
}

std::vector<Look> looks_of(const store::Result& result) {
  if (result.looks.empty()) return {{at_the_end, 1}};
  const std::vector<int> declared = declared_looks(result), totals = totals_of(result);
  const int over = rounds_over(result);
  std::vector<Look> looks;
  int before = 0;
  const auto look = [&](int rounds) {
    const auto total = std::ranges::find_if(totals, [&](int declared_then) { return declared_then >= rounds; });
    looks.push_back({rounds, (rounds - before) / static_cast<double>(total == totals.end() ? rounds : *total)});
    before = rounds;
  };
  for (const int rounds : declared) {
    if (rounds <= over) look(rounds);
  }
  // A partial sweep may go on to its next look, which must find the error unspent.
  const bool ended = result.state == store::RunState::complete;
  if (ended && over > before) look(over);
  return looks;
}

LookByLook look_by_look(SweepBlocks sweep, std::span<const Question> questions, std::span<const Look> looks,
                        Estimator estimator) {
  LookByLook out;
  out.answers.resize(questions.size());
  out.settled_after.resize(questions.size(), 0);
  for (const Look& look : looks) {
    const bool last = &look == &looks.back();
    SweepBlocks so_far = sweep;
    std::erase_if(so_far.blocks, [&](const FinishedBlock& block) { return block.round >= look.rounds; });
    std::vector<std::size_t> open;
    std::vector<Question> asked;
    for (std::size_t i = 0; i < questions.size(); ++i) {
      Question question = questions[i];
      const bool is_reference = question.case_index == sweep.baseline || question.case_index == sweep.control;
      if (out.settled_after[i] > 0 || (is_reference && !last)) continue;
      if (!is_reference) question.alpha *= look.share;
      open.push_back(i);
      asked.push_back(question);
    }
    const SweepEstimate estimate = estimator(so_far, asked);
    out.levels.clear();
    if (estimate.level) out.levels.push_back(*estimate.level);
    std::set<std::int32_t> leaving;
    for (std::size_t i = 0; i < open.size(); ++i) {
      out.answers[open[i]] = estimate.answers[i];
      if (look.rounds == at_the_end || !is_settled(estimate.answers[i], asked[i].smallest_effect)) continue;
      out.settled_after[open[i]] = look.rounds;
      leaving.insert(asked[i].case_index);
    }
    std::erase_if(sweep.blocks, [&](const FinishedBlock& block) {
      return block.round >= look.rounds && leaving.contains(block.case_index);
    });
  }
  return out;
}

LookByLook look_by_look(const store::Result& result, std::span<const SweepBlocks> sweeps,
                        std::span<const Question> questions, std::span<const Look> looks, Estimator estimator) {
  LookByLook out;
  out.answers.resize(questions.size());
  out.settled_after.resize(questions.size(), 0);
  for (const SweepBlocks& sweep : sweeps) {
    const std::vector<std::size_t> places = questions_about(result, sweep.baseline, questions);
    std::vector<Question> asked;
    for (const std::size_t place : places) asked.push_back(questions[place]);
    const LookByLook own = look_by_look(sweep, asked, looks, estimator);
    for (std::size_t i = 0; i < places.size(); ++i) {
      out.answers[places[i]] = own.answers[i];
      out.settled_after[places[i]] = own.settled_after[i];
    }
    out.levels.insert(out.levels.end(), own.levels.begin(), own.levels.end());
  }
  return out;
}

}  // namespace harness::analysis
