#include "analysis/estimator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "analysis/summary.h"
#include "analysis/verdict.h"
#include "base/text.h"

namespace harness::analysis {
namespace {

SweepEstimate estimate_predicted(const SweepBlocks& sweep, std::span<const Question> questions) {
  SweepEstimate out;
  for (const Question& question : questions) {
    Estimate& answer = out.answers.emplace_back();
    const auto at = std::ranges::find(sweep.blocks, question.case_index, &FinishedBlock::case_index);
    const auto baseline = std::ranges::find(sweep.blocks, sweep.baseline, &FinishedBlock::case_index);
    if (at == sweep.blocks.end() || baseline == sweep.blocks.end()) continue;
    answer.log_ratio = {.center = std::log(at->seconds) - std::log(baseline->seconds), .n = 1};
  }
  return out;
}

// Maps rounds to the case's block. A round holds each case once.
std::map<std::int32_t, const FinishedBlock*> blocks_of(const SweepBlocks& sweep, std::int32_t case_index) {
  std::map<std::int32_t, const FinishedBlock*> by_round;
  for (const FinishedBlock& block : sweep.blocks) {
    if (block.case_index == case_index) by_round[block.round] = &block;
  }
  return by_round;
}

Estimate with_mean(std::span<const double> log_ratios, const Question& question) {
  const ConfidenceInterval mean = mean_interval(log_ratios, question.alpha);
  if (mean.n < least_pairs) return {.log_ratio = mean.without_ends()};
  const double distance = distance_to_threshold(mean, question.smallest_effect);
  return {.log_ratio = mean, .rounds_needed = rounds_to_reach(distance, mean, question.alpha)};
}

// Returns the baseline's blocks, each as the geometric mean with the control's block of its round and session. A block
// of either without a partner stays as it is.
std::vector<FinishedBlock> mean_baselines(const SweepBlocks& sweep) {
  std::vector<FinishedBlock> means;
  auto copies = blocks_of(sweep, sweep.control);
  for (const auto& [round, block] : blocks_of(sweep, sweep.baseline)) {
    means.push_back(*block);
    const auto copy = copies.find(round);
    if (copy == copies.end() || copy->second->session != block->session) continue;
    means.back().seconds = std::sqrt(block->seconds * copy->second->seconds);
    copies.erase(copy);
  }
  for (const auto& [round, copy] : copies) means.push_back(*copy);
  return means;
}

// Returns how many standard errors an effect must clear the threshold by to be found with 80 % probability.
double standard_errors_needed(double alpha, double degrees) {
  const double quantile = student_t_quantile(1 - alpha / 2, degrees);
  double low = 0, high = 10 * quantile;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (noncentral_t_upper_tail(quantile, degrees, middle) < 0.8 ? low : high) = middle;
  }
  return high;
}

// Returns the work of a case's step: tokens, bytes on a collective's bus, or FLOP of a rank. 0: not known.
double work_of(const store::Result& result, std::int32_t case_index) {
  const store::ResultCase& result_case = result.case_at(case_index);
  if (result_case.tokens_per_step > 0) return result_case.tokens_per_step;
  const store::ResultPoint* point = result.find_point(case_index);
  if (point == nullptr) return 0;
  const auto times = static_cast<double>(point->repetitions);
  if (point->bus_factor > 0) return times * point->bytes * point->bus_factor;
  return result_case.model_flop_per_step / result_case.ranks;
}

// "5,8,12"
std::vector<int> read_rounds(const std::string& list, std::string_view what) {
  std::vector<int> all;
  if (list.empty()) return all;
  for (const std::string_view word : split(list, ',')) {
    const int rounds = number_in<int>(word).value_or(0);
    if (rounds <= (all.empty() ? 0 : all.back()))
      fail("the file declares {} {}, which are no ascending rounds", what, quote(list));
    all.push_back(rounds);
  }
  return all;
}

// Returns the declared totals of rounds in order; the last is the present one.
std::vector<int> totals_of(const store::Result& result) {
  std::vector<int> totals = read_rounds(result.extended, "the extended rounds");
  totals.push_back(declared_rounds(result));
  return totals;
}

}  // namespace

Estimator estimator_named(std::string_view declared) {
  if (declared == "level") return estimate_level;
  if (is_predicted(declared)) return estimate_predicted;
  fail("this file's verdicts rest on \"{}\"; this harness knows level and predicted: read it with the one that made it",
       declared);
}

std::vector<double> paired_log_ratios(const SweepBlocks& sweep, std::int32_t case_index) {
  const auto second = blocks_of(sweep, case_index);
  std::vector<double> log_ratios;
  for (const auto& [round, block] : blocks_of(sweep, sweep.baseline)) {
    const auto other = second.find(round);
    if (other == second.end() || other->second->session != block->session) continue;
    log_ratios.push_back(std::log(other->second->seconds / block->seconds));
  }
  return log_ratios;
}

SweepEstimate estimate_mean_pairs(const SweepBlocks& sweep, std::span<const Question> questions) {
  SweepBlocks joint{mean_baselines(sweep), sweep.baseline};
  for (FinishedBlock& block : joint.blocks) block.case_index = sweep.baseline;
  for (const FinishedBlock& block : sweep.blocks) {
    if (block.case_index != sweep.baseline && block.case_index != sweep.control) joint.blocks.push_back(block);
  }
  SweepEstimate out;
  for (const Question& question : questions) {
    const SweepBlocks& blocks = question.case_index == sweep.control ? sweep : joint;
    out.answers.push_back(with_mean(paired_log_ratios(blocks, question.case_index), question));
  }
  return out;
}

double resolvable_effect(int rounds, int comparisons, double block_deviation, double smallest_effect,
                         double confidence) {
  if (rounds < least_pairs) return std::numeric_limits<double>::infinity();
  const double n = rounds;
  const double of_case = 1 / n, of_reference = 1 / (2 * n);  // as multiples of one block's variance
  const double both = of_case + of_reference;
  double standard_error = block_deviation * std::sqrt(both), degrees = n - 1;
  if (rounds >= least_level_rounds) {
    // The degrees of freedom of level_interval with complete rounds.
    degrees = both * both / (of_case * of_case / (2 * n - 2) + of_reference * of_reference / (3 * n - 2));
    // Variances are only moved up, by a share of their own scatter, which is sqrt(2 / (n - 1)). Simulations of 1 to 22
    // cases and 5 to 24 rounds: without this factor, half-widths are 2 to 7 % too small.
    standard_error *= 1 + 0.13 / std::sqrt(n - 1);
  }
  const double needed = standard_errors_needed(family_alpha(comparisons, confidence), degrees);
  return std::expm1(std::log1p(smallest_effect) + needed * standard_error);
}

double distance_to_threshold(const ConfidenceInterval& interval, double smallest_effect) {
  return std::abs(std::abs(interval.center) - std::log1p(smallest_effect));
}

int fewest_rounds(int now, const std::function<bool(int)>& reached) {
  int low = now, high = max_rounds;  // low fails; high succeeds, or is the answer anyway
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (reached(middle) ? high : low) = middle;
  }
  return high;
}

int rounds_to_reach(double distance, const ConfidenceInterval& now, double alpha) {
  const double scatter = now.standard_error * std::sqrt(now.n);
  return fewest_rounds(now.n, [&](int rounds) {
    return student_t_quantile(1 - alpha / 2, rounds - 1) * scatter / std::sqrt(rounds) < distance;
  });
}

std::vector<SweepBlocks> comparable_blocks(const store::Result& result) {
  if (result.baseline() == nullptr) return {};
  std::vector<SweepBlocks> sweeps;
  for (std::int32_t i = 0; i < result.case_count(); ++i) {
    if (store::is_reference(result.case_at(i).role())) sweeps.push_back({{}, i});
  }
  const auto of_reference = [&](std::int32_t reference) {
    return std::ranges::find(sweeps, reference, &SweepBlocks::baseline);
  };
  for (std::int32_t i = 0; i < result.case_count(); ++i) {
    const auto sweep = of_reference(result.case_at(i).reference);
    if (sweep != sweeps.end() && result.case_at(i).role() == store::CaseRole::control) sweep->control = i;
  }
  for (FinishedBlock& block : finished_blocks(result)) {
    const std::int32_t reference = result.at(block).reference;
    const auto sweep = of_reference(reference);
    if (sweep == sweeps.end()) continue;
    const double before = work_of(result, reference), after = work_of(result, block.case_index);
    if (before > 0 && after > 0) block.seconds *= before / after;
    sweep->blocks.push_back(block);
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
  // A partial sweep may continue to its next look, which needs the error unspent.
  const bool ended = result.state == store::RunState::complete;
  if (ended && over > before) look(over);
  return looks;
}

SweepEstimate look_by_look(SweepBlocks sweep, std::span<const Question> questions, std::span<const Look> looks,
                           Estimator estimator) {
  SweepEstimate out;
  out.answers.resize(questions.size());
  for (const Look& look : looks) {
    const bool last = &look == &looks.back();
    SweepBlocks so_far = sweep;
    std::erase_if(so_far.blocks, [&](const FinishedBlock& block) { return block.round >= look.rounds; });
    std::vector<std::size_t> open;
    std::vector<Question> asked;
    for (std::size_t i = 0; i < questions.size(); ++i) {
      Question question = questions[i];
      const bool is_reference = question.case_index == sweep.baseline || question.case_index == sweep.control;
      if (out.answers[i].settled_after > 0 || (is_reference && !last)) continue;
      if (!is_reference) question.alpha *= look.share;
      open.push_back(i);
      asked.push_back(question);
    }
    const SweepEstimate estimate = estimator(so_far, asked);
    out.level = estimate.level;
    std::set<std::int32_t> leaving;
    for (std::size_t i = 0; i < open.size(); ++i) {
      Estimate& answer = out.answers[open[i]] = estimate.answers[i];
      const Verdict verdict = verdict_of(answer.log_ratio, asked[i].smallest_effect);
      if (look.rounds == at_the_end || !(moved(verdict) || verdict == Verdict::same)) continue;
      answer.settled_after = look.rounds;
      leaving.insert(asked[i].case_index);
    }
    std::erase_if(sweep.blocks, [&](const FinishedBlock& block) {
      return block.round >= look.rounds && leaving.contains(block.case_index);
    });
  }
  return out;
}

}  // namespace harness::analysis
