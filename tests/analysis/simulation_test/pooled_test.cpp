// What pooled verdicts are worth (docs/method.md quotes the numbers printed here): whole pools are drawn with known
// truth: no case has an effect, but each run has an offset of its own per case, and one of its baseline that all its
// cases share, beside the scatter of its rounds.
#include "analysis/comparison.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "analysis/verdict.h"
#include "base/random.h"
#include "support/sample_files.h"
#include "support/sample_results.h"
#include "support/soak.h"

namespace harness::analysis {
namespace {

class NoEffect {
 public:
  static constexpr std::size_t cases = 11;
  struct Amounts {
    double run = 0.01, baseline = 0.01, own_error = 0.003;
  };

  NoEffect(std::size_t runs, const Amounts& amounts) : amounts_(amounts) {
    std::vector<std::string> names;
    for (std::size_t c = 0; c < cases; ++c) names.push_back(fmt::format("micro_batch_size={}", c + 2));
    for (std::size_t run = 0; run < runs; ++run) {
      store::Result result = test::samples::sweep(names, std::vector<double>(cases + 2, 1), 1);
      result.smallest_effect = 0;  // every interval that leaves out "no change" is a verdict
      pool_.add(fmt::format("r{}", run), std::move(result));
    }
  }
  Pool draw(std::uint64_t trial) {
    for (std::size_t run = 0; run < pool_.list.size(); ++run) {
      const auto normal = [&](std::uint64_t which) { return philox_normal(trial, which, 100 + run); };
      for (std::size_t c = 1; c < cases + 2; ++c) {
        Effect effect;
        effect.standard_error = amounts_.own_error;
        effect.degrees = 1e6;
        effect.ratio =
            std::exp(amounts_.run * normal(c) + amounts_.baseline * normal(50) + amounts_.own_error * normal(c + 60));
        effect.verdict = Verdict::unresolved;
        pool_.summaries[run].cases[c].effect = effect;
      }
    }
    return pool_runs(pool_.list);
  }

 private:
  test::SampleFiles pool_;
  Amounts amounts_;
};

struct Shares {
  double false_verdict = 0, control = 0, differing = 0;  // of pools that show it in any case
};

Shares simulate(std::size_t runs, int trials, const NoEffect::Amounts& amounts) {
  NoEffect no_effect(runs, amounts);
  Shares shares;
  for (int trial = 0; trial < trials; ++trial) {
    const Pool pool = no_effect.draw(static_cast<std::uint64_t>(trial));
    const auto any = [&](auto predicate) { return std::ranges::any_of(pool.cases, predicate) ? 1.0 / trials : 0.0; };
    shares.false_verdict +=
        any([](const PooledCase& row) { return row.role == store::CaseRole::change && moved(row.judgement.verdict); });
    shares.control += pool.unreliable ? 1.0 / trials : 0;
    shares.differing += any([](const PooledCase& row) { return row.runs_differ; });
  }
  return shares;
}

TEST(PooledSimulation, AFalseVerdictIsAsRareAsDeclared) {
  const int trials = test::draws(2000, 2000);
  const double error = std::sqrt(0.05 * 0.95 / trials), bound = 0.05 + 2.6 * error;
  for (const std::size_t runs : {3u, 5u, 8u}) {
    for (const NoEffect::Amounts& amounts : {NoEffect::Amounts{}, NoEffect::Amounts{.baseline = 0}}) {
      const Shares shares = simulate(runs, trials, amounts);
      std::printf(
          "%zu runs, offset of the baseline %.0f %%: pools with a false verdict %.1f %%, control moved %.1f %%\n", runs,
          100 * amounts.baseline, 100 * shares.false_verdict, 100 * shares.control);
      EXPECT_LT(shares.false_verdict, bound) << runs << " runs, baseline " << amounts.baseline;
      EXPECT_LT(shares.control, bound) << runs << " runs, baseline " << amounts.baseline;
      EXPECT_GT(shares.control, 0.05 - 2.6 * error) << runs << " runs, baseline " << amounts.baseline;
      EXPECT_GT(shares.differing, 0.95) << "offsets of three standard errors are found";
    }
  }
}

TEST(PooledSimulation, RunsThatDifferByTheirRoundsAloneAreRarelyMarked) {
  const int trials = test::draws(2000, 2000);
  const double bound = 0.05 + 2.6 * std::sqrt(0.05 * 0.95 / trials);
  for (const std::size_t runs : {3u, 5u, 8u}) {
    const Shares shares = simulate(runs, trials, {.run = 0, .baseline = 0});
    std::printf("%zu runs, no offsets: pools with a marked case %.1f %%\n", runs, 100 * shares.differing);
    EXPECT_LT(shares.differing, bound) << runs;
    EXPECT_GT(shares.differing, 0.02) << runs;
  }
}

}  // namespace
}  // namespace harness::analysis
