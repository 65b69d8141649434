// Blocks of the rounds that share processes, before and after a sweep is resumed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "analysis/cases.h"
#include "rounds_fixture.h"

namespace harness::sweep {

namespace {

// A file without the column `process` is of a time when every block had a process of its own.
TEST_F(Rounds, OfAnOlderFileShareNoProcess) {
  stop_a_sweep_that_shares();
  store::Result older = file();
  for (store::ResultBlock& block : older.blocks) block.process = -1;
  store::write_result(path_, older);
  session(true);
  EXPECT_EQ(file().state, store::RunState::complete);
  EXPECT_EQ(job_.shared, 0);
}

TEST_F(Rounds, ResumedUnderACommandShareNoProcess) {
  stop_a_sweep_that_shares();
  wrap_ = "nsys profile";
  session(true);
  EXPECT_EQ(job_.shared, 0);
  const store::Result result = file();
  std::set<std::int32_t> processes;
  for (const int block : job_.measured)
    EXPECT_TRUE(processes.insert(result.blocks[static_cast<std::size_t>(block)].process).second) << block;
}

// A sweep was killed after a block had failed in a shared process and had been repeated in one of its own.
TEST_F(Rounds, AProcessThatIsSharedAgainAfterABlockAloneIsWarmedUpAgain) {
  const std::int32_t alone = stop_a_sweep_that_shares().at(1);
  store::Result sharing = file();
  sharing.blocks[static_cast<std::size_t>(alone)].process = alone;
  store::write_result(path_, sharing);
  job_.warms_up = false;
  session(true);
  EXPECT_EQ(file().state, store::RunState::complete);
  EXPECT_EQ(job_.warm_ups, 11 + 1);  // one in each of the rounds, and one more in the interrupted round
  EXPECT_THAT(file().warnings, ::testing::Contains(::testing::EndsWith("it is cold")));
}

TEST_F(Rounds, BlocksThatAFailureMovedShareNoProcessWithEarlierOnesAfterAResumption) {
  const std::vector<std::int32_t> second_round = stop_a_sweep_that_shares();
  const store::Result sharing = file();
  job_.fails = {sharing.at(sharing.blocks[static_cast<std::size_t>(second_round.at(1))]).name};
  session(true, 3);  // the first block, the one that fails, and its repetition
  const store::Result left = file();
  std::vector<std::int32_t> processes;
  for (const std::int32_t i : second_round) processes.push_back(left.blocks[static_cast<std::size_t>(i)].process);
  EXPECT_EQ(processes, (std::vector{5, second_round[1], second_round.at(2), second_round[2]}));
}

}  // namespace

}  // namespace harness::sweep
