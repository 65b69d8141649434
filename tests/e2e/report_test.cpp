// A report and a sweep on a full disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/command.h"
#include "support/files.h"
#include "support/paths.h"

namespace harness {
namespace {

using ::testing::HasSubstr;

// A file size limit (ulimit -f) stands for a full disk: there is a message, and no file is left.
TEST(Report, BeyondTheLimitOfASizeSaysSoAndLeavesNothing) {
  const test::TemporaryFolder folder;
  const std::string limited = "sh -c 'ulimit -f 8; exec " + test::program_path() + " ";
  const std::string report = limited + "report results/example.h5 -o " + (folder / "x.html") + "'";
  const std::string sweep =
      limited + "sweep configs/laptop.yaml --only precision --time-budget 3600s -o " + (folder / "x.h5") + "'";
  for (const std::string& command : {report, test::under_mpirun(1, sweep)}) {
    const auto o = test::run(command);
    EXPECT_EQ(o.exit_code, 1) << o.err;
    EXPECT_THAT(o.err, HasSubstr("File too large"));
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  }
}

}  // namespace
}  // namespace harness
