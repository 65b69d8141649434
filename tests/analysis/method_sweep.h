#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "method_level.h"

// A whole sweep by docs/method.md: which blocks count, what error a comparison has, and "Looks". Of files whose first
// case is the baseline and whose second is its copy.
namespace harness::method {

/// The finished blocks of the rounds before `rounds`, per token in terms of the baseline's step; `name` is the case.
std::vector<PageBlock> blocks_before(const store::Result& file, int rounds);
/// Groups as the model wants them: the copy of the baseline in the reference, or apart.
std::vector<PageBlock> grouped(std::vector<PageBlock> blocks, bool copy_apart = false);
/// "What all intervals share": the declared error, over the cases that could run and a ladder's contrasts.
double comparison_alpha(const store::Result& file);

/// What the page says of a case.
struct PageAnswer {
  PageInterval interval;
  analysis::Verdict verdict = analysis::Verdict::none;
  int settled_after = 0;          // rounds; 0: not settled, or no looks
  double alpha = 0;               // of the look that settled it, else of the last one
  std::vector<PageBlock> blocks;  // of all cases, that this look saw
};
/// The intervals of some cases from the blocks of a look.
using PageEstimator = std::function<std::vector<PageInterval>(const std::vector<PageBlock>& blocks,
                                                              const std::vector<int>& cases, double alpha)>;
/// By case. Of a complete file.
std::vector<PageAnswer> answers_of(const store::Result& file, const PageEstimator& estimator);

/// "The machine's level".
std::vector<PageInterval> by_level(const std::vector<PageBlock>& blocks, const std::vector<int>& cases, double alpha);
/// "Pairs within rounds".
std::vector<PageInterval> by_pairs(const std::vector<PageBlock>& blocks, const std::vector<int>& cases, double alpha);

/// The d of "Pairs within rounds": the weighted sum of the logarithms of these cases' blocks, of each round in which
/// all of them finished in one session.
std::vector<double> within_rounds(const std::vector<PageBlock>& blocks,
                                  const std::vector<std::pair<int, double>>& cases);
PageInterval yuen(const std::vector<double>& d, double alpha);

/// A copy of a result whose blocks take exp(log_factor(block)) as long, under another run's name.
store::Result changed(store::Result file, const std::string& uuid,
                      const std::function<double(const store::ResultBlock&)>& log_factor);

}  // namespace harness::method
