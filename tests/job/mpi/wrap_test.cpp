// What the command of --wrap may do around its worker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "launched.h"
#include "support/temporary_folder.h"

namespace harness::mpi {
namespace {

using test::Launched;
using ::testing::HasSubstr;

class Wrap : public ::testing::Test {
 protected:
  /// A script as the command, which finds its worker's command line in "$@".
  std::string around(const std::string& script) {
    const std::string path = folder_ / "wrap.sh";
    std::ofstream(path) << script;
    return "LAUNCH_TEST_WRAP='sh " + path + "'";
  }
  test::TemporaryFolder folder_;
};

TEST_F(Wrap, MayPrintOnStdoutFirst) {
  Launched job(2, "blocks=2", around("echo profiling starts\n\"$@\"\necho profiling ends\n"));
  ASSERT_TRUE(job.wait()) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("block 0 ok true"));
  EXPECT_THAT(job.output(), HasSubstr("block 1 ok true"));
}

TEST_F(Wrap, MayFloodStdout) {
  Launched job(2, "blocks=1", around("head -c 100000000 /dev/zero\n\"$@\"\n"));
  ASSERT_TRUE(job.wait()) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("block 0 ok true"));
}

TEST_F(Wrap, IsWaitedForWhileItWritesItsReport) {
  const std::string report = folder_ / "report";
  Launched job(2, "blocks=1", around("\"$@\"\nsleep 4\necho done >> " + report + "\n"));
  ASSERT_TRUE(job.wait()) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("block 0 ok true"));
  EXPECT_EQ(std::filesystem::exists(report) ? std::filesystem::file_size(report) : 0, 10u);  // both ranks'
}

// Deadlines are for what is silent; this is wrong at once.
TEST_F(Wrap, WhatIsNoMessageIsBlamedAtOnce) {
  const auto began = std::chrono::steady_clock::now();
  Launched job(2, "blocks=1 start=60", around("exec cat /dev/zero >/proc/self/fd/199\n"));
  ASSERT_TRUE(job.wait(50)) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("sent its supervisor what is no message of harness"));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(40));
}

TEST_F(Wrap, ThatClosesThePipesIsTold) {
  Launched job(1, "blocks=1", around("exec bash -c 'exec 198<&- 199>&-; exec \"$@\"' x \"$@\"\n"));
  ASSERT_TRUE(job.wait()) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("block 0 ok false"));
  EXPECT_THAT(job.output(), HasSubstr("got no pipe to its supervisor"));
}

}  // namespace
}  // namespace harness::mpi
