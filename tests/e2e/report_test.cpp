// A sweep and its report.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/command.h"
#include "support/files.h"
#include "support/paths.h"

namespace harness {
namespace {

using test::TemporaryFolder;
using ::testing::HasSubstr;

// One sweep for all tests. It also sweeps ranks, so that every chart has data.
class Report : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    const auto config = test::write_small_config(*folder_, 3, "  micro_batch_size: [2]\n  ranks: [1]\n");
    const auto swept = test::run(test::harness_job(2, "sweep " + config));
    ASSERT_TRUE(swept.exit_code == 0 || swept.exit_code == 4) << swept.out << swept.err;
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  static std::string file(const std::string& name) { return *folder_ / name; }
  static test::Outcome report(const std::string& arguments) {
    return test::run(test::program_path() + " report " + file("small.h5") + " " + arguments);
  }
  static TemporaryFolder* folder_;
};
TemporaryFolder* Report::folder_ = nullptr;

TEST_F(Report, IsWrittenBesideTheResultAndNeverOverSomething) {
  const auto first = report("");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("small.html"));
  const std::string page = test::text_of(file("small.html"));
  for (const char* id : {"tornado", "scaling", "waterfall-baseline", "timeline-baseline", "late-ranks"}) {
    EXPECT_THAT(page, HasSubstr("<figure id=\"" + std::string(id) + "\">")) << id;
  }
  const auto second = report("");
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.err, HasSubstr("--force"));
  EXPECT_EQ(report("--force").exit_code, 0);
}

// A file size limit (ulimit -f) stands for a full disk: there is a message, and no file is left.
TEST_F(Report, BeyondTheLimitOfASizeSaysSoAndLeavesNothing) {
  const TemporaryFolder folder;
  const std::string small = test::program_path() + " report " + file("small.h5") + " -o " + (folder / "x.html");
  const auto page = test::run("sh -c 'ulimit -f 8; exec " + small + "'");
  EXPECT_EQ(page.exit_code, 1) << page.err;
  EXPECT_THAT(page.err, HasSubstr("File too large"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  const std::string sweep =
      test::program_path() + " sweep configs/laptop.yaml --only precision --time-budget 3600s -o " + (folder / "x.h5");
  const auto swept = test::run(
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun -np 1 sh -c 'ulimit -f 8; exec " + sweep + "'");
  EXPECT_EQ(swept.exit_code, 1) << swept.err;
  EXPECT_THAT(swept.err, HasSubstr("File too large"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace harness
