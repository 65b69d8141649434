// "Ladder" of docs/method.md: what each fix adds and its interactions, recomputed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "analysis/summary.h"
#include "base/random.h"
#include "method_sweep.h"
#include "support/sample_results.h"

namespace harness::method {
namespace {

// A, B and C one on top of the other, on a machine that drifts; blocks start 7 to 13 s apart.
store::Result ladder(int rounds, const std::string& interval) {
  store::Result file =
      test::samples::sweep({"A", "B", "A + B", "C", "A + B + C"}, {1, 1.002, 0.93, 0.9, 0.85, 1.04, 0.87}, rounds);
  file.interval = interval;
  file.ladder = {{"A", 2, 2}, {"B", 3, 4}, {"C", 5, 6}};
  double now = 1e9;
  std::uint64_t i = 0;
  for (store::ResultBlock& block : file.blocks) {
    block.start_unix_s = now;
    block.setup_s = 2 + 0.1 * block.case_index;
    now += 10 + 3 * std::sin(static_cast<double>(++i));
  }
  return changed(file, "ladder", [](const store::ResultBlock& block) {
    return 0.01 * philox_normal(5, static_cast<std::uint64_t>(block.round * 16 + block.case_index));
  });
}

void expect_effect(const analysis::Effect& effect, const PageInterval& page, double e) {
  EXPECT_NEAR(std::log(effect.ratio), page.center, 1e-7);
  EXPECT_NEAR(std::log(effect.low), page.low, 1e-7);
  EXPECT_NEAR(std::log(effect.high), page.high, 1e-7);
  EXPECT_NEAR(effect.standard_error, page.error, 1e-7);
  EXPECT_NEAR(effect.degrees, page.degrees, 1e-5);
  EXPECT_EQ(effect.verdict, verdict(page, e));
}

// `page`: the interval of a weighted sum over cases.
void expect_ladder(const store::Result& file, const auto& page) {
  const analysis::Summary summary = analysis::summarise(file);
  ASSERT_EQ(summary.ladder.size(), 3u);
  const double e = file.smallest_effect;
  for (std::size_t k = 0; k < 3; ++k) {
    SCOPED_TRACE(summary.ladder[k].name);
    const store::ResultRung& rung = file.ladder[k];
    expect_effect(*summary.case_at(rung.alone).effect, page({{rung.alone, 1}, {0, -1}}), e);
    if (k == 0) continue;
    const int before = file.ladder[k - 1].together;
    expect_effect(*summary.ladder[k].on_top, page({{rung.together, 1}, {before, -1}}), e);
    expect_effect(*summary.ladder[k].interaction, page({{rung.together, 1}, {before, -1}, {rung.alone, -1}, {0, 1}}),
                  e);
  }
}

using Cases = std::vector<std::pair<int, double>>;

PageContrast groups_of(const Cases& cases) {
  PageContrast contrast;
  for (const auto& [c, w] : cases) contrast.push_back({std::max(c - 1, 0), w});
  return contrast;
}

TEST(MethodLadder, ContrastsOfTheLevelModelFollowFromThePage) {
  const store::Result file = ladder(12, "level");
  const double alpha = comparison_alpha(file);
  EXPECT_NEAR(alpha, 0.05 / (5 + 4), 1e-12);  // of three fixes: five cases, two of each contrast
  const PageModel model(blocks_before(file, file.rounds));
  expect_ladder(file, [&](const Cases& cases) { return model.interval(groups_of(cases), alpha); });
}

// With five rounds, two slow blocks of A + B may be the undisturbed ones.
TEST(MethodLadder, ContrastsReachToBlocksInAnotherState) {
  const store::Result file = changed(ladder(5, "level"), "two states", [](const store::ResultBlock& block) {
    return block.case_index == 4 && block.round % 3 == 1 ? std::log(1.4) : 0;
  });
  const double alpha = comparison_alpha(file);
  const PageModel model(blocks_before(file, file.rounds));
  EXPECT_TRUE(model.reaches({{3, 1}, {1, -1}}, alpha));
  expect_ladder(file, [&](const Cases& cases) { return model.interval(groups_of(cases), alpha); });
}

TEST(MethodLadder, WithPairsContrastsAreFormedWithinRounds) {
  store::Result file = ladder(12, "pairs");
  test::samples::block_of(file, 7, 4)->status = store::BlockStatus::failed;
  const double alpha = comparison_alpha(file);
  const std::vector<PageBlock> blocks = blocks_before(file, file.rounds);
  expect_ladder(file, [&](const Cases& cases) { return yuen(within_rounds(blocks, cases), alpha); });
}

}  // namespace
}  // namespace harness::method
