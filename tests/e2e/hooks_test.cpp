// Tests plant faults by the environment; nobody else's environment may.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "command.h"
#include "store/result_file.h"
#include "support/paths.h"

namespace harness {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string sweep_by(const std::string& program, const test::TemporaryFolder& folder) {
  const auto config = test::write_small_config(folder, 2, "  micro_batch_size: [2]\n");
  return "HARNESS_TEST_FAULT='case=micro_batch_size=2,kind=pretend,step=every,seconds=100' "
         "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -np 2 " +
         program + " sweep " + config;
}

TEST(Hooks, APlantedFaultIsIgnoredByTheProductInOneLine) {
  const test::TemporaryFolder folder;
  const auto o = test::run(sweep_by(test::product_path(), folder));
  EXPECT_TRUE(o.exit_code == 0 || o.exit_code == 4) << o.err;
  const std::string line = "harness: HARNESS_TEST_FAULT is set, but only the tests' build of harness takes notice\n";
  const std::size_t at = o.err.find(line);
  ASSERT_NE(at, std::string::npos) << o.err;
  EXPECT_EQ(o.err.find(line, at + 1), std::string::npos) << "by rank 0 alone";
  for (const auto& block : store::read_result(folder / "small.h5").step_seconds) {
    for (const float seconds : block) EXPECT_LT(seconds, 50);
  }
}

TEST(Hooks, APlantedFaultIsRecordedByTheProgramThatTakesIt) {
  const test::TemporaryFolder folder;
  const auto o = test::run(sweep_by(test::program_path(), folder));
  EXPECT_THAT(o.err, Not(HasSubstr("takes notice")));
  EXPECT_THAT(store::read_result(folder / "small.h5").warnings, ::testing::Contains(HasSubstr("a fault was planted")));
}

}  // namespace
}  // namespace harness
