// `show --follow` beside a sweep that runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "command.h"
#include "support/paths.h"

namespace harness {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

TEST(Follow, PrintsALiveSweepRoundByRoundAndEndsWithIt) {
  const test::TemporaryFolder folder;
  const std::string config = test::write_small_config(folder, 3), file = folder / "small.h5";
  // A round of four blocks takes five seconds: longer than the two between two looks at the file.
  test::Command sweep("HARNESS_TEST_FAULT='kind=delay,step=every,seconds=0.3' " +
                      test::harness_job(2, "sweep -v " + config));
  ASSERT_TRUE(sweep.wait_for("round 1/3")) << sweep.err_so_far();
  const test::Outcome followed = test::run(test::program_path() + " show --follow " + file, 200);
  EXPECT_THAT(followed.exit_code, AnyOf(0, 4)) << followed.err;
  for (const char* line :
       {"Running: 1 of 3 rounds, ", "Running: 2 of 3 rounds, ", "\nComplete: 3 of 3 rounds, 12 of 12 blocks.\n"}) {
    EXPECT_THAT(followed.out, HasSubstr(line));
  }
  EXPECT_EQ(followed.out.find("Complete: "), followed.out.rfind("Complete: "));
  EXPECT_THAT(sweep.wait().exit_code, AnyOf(0, 4));
}

}  // namespace
}  // namespace harness
