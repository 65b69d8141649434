#include "analysis/estimator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/summary.h"
#include "analysis/verdict.h"
#include "base/text.h"
#include "support/sample_results.h"

namespace harness::analysis {
namespace {

using ::testing::ElementsAre;

std::vector<int> rounds_of(const std::vector<Look>& looks) {
  std::vector<int> rounds;
  for (const Look& look : looks) rounds.push_back(look.rounds);
  return rounds;
}

double spent(const std::vector<Look>& looks) {
  double sum = 0;
  for (const Look& look : looks) sum += look.share;
  return sum;
}

store::Result declared(const std::string& looks, int rounds_measured) {
  store::Result result = test::samples::sweep({"a=1", "b=1"}, {1, 1, 0.9, 1});
  result.state = store::RunState::running;
  result.looks = looks;
  for (store::ResultBlock& block : result.blocks) {
    if (block.round >= rounds_measured) block.status = store::BlockStatus::pending;
  }
  return result;
}

TEST(Looks, OfASweepThatDeclaresNoneIsOneAtTheEnd) {
  const std::vector<Look> looks = looks_of(declared("", 12));
  ASSERT_EQ(looks.size(), 1u);
  EXPECT_EQ(looks[0].share, 1);
}

TEST(Looks, TakePlaceWhenTheirRoundsAreOver) {
  EXPECT_THAT(rounds_of(looks_of(declared("5,8,12", 4))), ElementsAre());
  EXPECT_THAT(rounds_of(looks_of(declared("5,8,12", 5))), ElementsAre(5));
  EXPECT_THAT(rounds_of(looks_of(declared("5,8,12", 11))), ElementsAre(5, 8));
  const std::vector<Look> all = looks_of(declared("5,8,12", 12));
  EXPECT_THAT(rounds_of(all), ElementsAre(5, 8, 12));
  EXPECT_NEAR(all[0].share, 5.0 / 12, 1e-12);
  EXPECT_NEAR(all[1].share, 3.0 / 12, 1e-12);
  EXPECT_NEAR(spent(all), 1, 1e-12);
}

TEST(Looks, OfAnExtendedSweepSpendErrorOfTheirOwn) {
  store::Result result = declared("8,12", 12);
  result.extended = "8";
  const std::vector<Look> looks = looks_of(result);
  EXPECT_THAT(rounds_of(looks), ElementsAre(8, 12));
  EXPECT_EQ(looks[0].share, 1);  // it was the only look when it was taken
  EXPECT_NEAR(looks[1].share, 4.0 / 12, 1e-12);
  EXPECT_NEAR(error_bound(result), 0.05 * (1 + 4.0 / 12), 1e-12);
  EXPECT_NEAR(error_bound(declared("8,12", 12)), 0.05, 1e-12);
  result.extended = "8,4";
  EXPECT_THROW(looks_of(result), Error);
}

TEST(Looks, ASweepThatEndedEarlyLooksOnceMore) {
  store::Result result = declared("5,8,12", 10);
  for (store::ResultBlock& block : result.blocks) {
    if (block.round >= 10) block.status = store::BlockStatus::left_out;
  }
  result.state = store::RunState::complete;
  const std::vector<Look> looks = looks_of(result);
  EXPECT_THAT(rounds_of(looks), ElementsAre(5, 8, 10));
  EXPECT_NEAR(spent(looks), 10.0 / 12, 1e-12);
}

TEST(Looks, ADeclarationThatMakesNoSenseIsRefused) {
  for (const char* text : {"8,5", "5,,8", "five", "5 8", "0,5", "5,99999999999999"})
    EXPECT_THROW(looks_of(declared(text, 12)), Error) << text;
}

TEST(Looks, ASettledCaseKeepsItsVerdictAndItsLaterBlocksDoNotCount) {
  store::Result result = declared("5,8,12", 12);
  const Summary before = summarise(result);
  EXPECT_EQ(before.cases[2].effect->verdict, Verdict::faster);
  EXPECT_EQ(before.cases[2].settled_after, 5);
  EXPECT_EQ(before.cases[2].effect->rounds, 5);
  for (std::size_t i = 0; i < result.blocks.size(); ++i) {
    if (result.blocks[i].case_index != 2 || result.blocks[i].round < 5) continue;
    for (float& seconds : result.step_seconds[i]) seconds *= 3;
  }
  const Summary after = summarise(result);
  EXPECT_EQ(after.cases[2].effect->ratio, before.cases[2].effect->ratio);
  EXPECT_EQ(after.cases[3].effect->low, before.cases[3].effect->low);
}

// A look at five rounds of twelve gets five twelfths of the error, so its interval is wider.
TEST(Looks, AnEarlyLookSpendsItsShareAlone) {
  store::Result looked = declared("5,12", 5), fixed = looked;
  fixed.looks = "";
  const Effect early = *summarise(looked).cases[3].effect, all = *summarise(fixed).cases[3].effect;
  EXPECT_EQ(early.ratio, all.ratio);
  EXPECT_LT(early.low, all.low);
  EXPECT_GT(early.high, all.high);
}

}  // namespace
}  // namespace harness::analysis
