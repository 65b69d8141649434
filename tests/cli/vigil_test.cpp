// What `show --follow` finds out about the writer of a file by looking at it again and again.
#include "cli/vigil.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace harness::cli {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

store::Imprint imprint_of(const store::Owner& owner, std::int64_t count) {
  store::Imprint imprint;
  imprint.owner = owner;
  imprint.token = owner.token;
  imprint.beat = store::Beat{count, "2026-11-23T20:03:48Z", std::chrono::milliseconds(5000)};
  imprint.beat_text = store::print_beat(*imprint.beat);
  return imprint;
}

TEST(Vigil, ACountThatMovesRunsAndOneThatStandsForThreePeriodsIsKilled) {
  store::Owner owner = store::this_process();
  owner.boot = "another";
  Vigil vigil;
  const Vigil::Clock::time_point start{};
  EXPECT_EQ(vigil.look(imprint_of(owner, 7), start), "");
  EXPECT_EQ(vigil.word(), Vigil::Word::unfinished);
  EXPECT_THAT(vigil.look(imprint_of(owner, 8), start + seconds(6)), HasSubstr("running: " + owner.user));
  EXPECT_EQ(vigil.look(imprint_of(owner, 8), start + seconds(20)), "");
  EXPECT_EQ(vigil.word(), Vigil::Word::running);
  EXPECT_THAT(vigil.look(imprint_of(owner, 8), start + seconds(21)), HasSubstr("killed: no sign of life from "));
  EXPECT_EQ(vigil.look(imprint_of(owner, 8), start + seconds(60)), "");  // said once
  EXPECT_THAT(vigil.look(imprint_of(owner, 9), start + seconds(62)), HasSubstr("running: "));
}

TEST(Vigil, WhereTheKernelKnowsTheProcessOneLookDecides) {
  store::Owner owner = store::this_process();
  Vigil vigil;
  EXPECT_THAT(vigil.look(imprint_of(owner, 1), {}), HasSubstr("running: "));
  ++owner.process_start;
  EXPECT_THAT(vigil.look(imprint_of(owner, 1), {}), HasSubstr("killed: "));
  store::Imprint ended = imprint_of(owner, 1);
  ended.state = store::RunState::complete;
  EXPECT_EQ(vigil.look(ended, {}), "");
  EXPECT_EQ(vigil.word(), Vigil::Word::unfinished);
}

TEST(Vigil, AFileOfAnEarlierVersionTellsNothing) {
  Vigil vigil;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(vigil.look({}, Vigil::Clock::time_point{} + seconds(100 * i)), "");
  EXPECT_EQ(vigil.word(), Vigil::Word::unfinished);
}

}  // namespace
}  // namespace harness::cli
