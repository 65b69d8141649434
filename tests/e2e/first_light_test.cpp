#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "command.h"
#include "support/files.h"
#include "support/paths.h"

namespace harness {
namespace {

using test::TemporaryFolder;
using ::testing::HasSubstr;
using ::testing::Not;

// What would run on a GPU, rehearsed on the cpu backend with little time: parts that need more are not run.
test::Outcome first_light(const TemporaryFolder& folder, const std::string& command, int seconds) {
  return test::run("env BACKEND=cpu PYTHON=false HARNESS=" + test::program_path() + " OUT=" + folder / "out" +
                   " KEPT=" + folder / "kept" + " LIMIT=" + std::to_string(seconds) + " bash scripts/first_light.sh " +
                   command);
}

TEST(FirstLight, TheFirstCommandPassesWithoutAGpu) {
  const TemporaryFolder folder;
  const auto o = first_light(folder, "1", 1000);
  EXPECT_EQ(o.exit_code, 0) << o.out << o.err << test::text_of(folder / "kept/layouts.txt");
  for (const char* part : {"operations", "training", "layouts", "memcheck", "doctor"}) {
    EXPECT_THAT(o.out, ::testing::ContainsRegex(std::string(part) + " .* passed"));
  }
  EXPECT_EQ(o.err, "");
  EXPECT_EQ(test::text_of(folder / "out/table1.txt"), o.out);
  EXPECT_THAT(test::text_of(folder / "out/training.txt"), HasSubstr("reference: Llama-style gradients fp32: passed"));
  EXPECT_FALSE(test::text_of(folder / "out/kept1.tgz").empty());
}

TEST(FirstLight, WhatHasNoTimeLeftIsNotRun) {
  const TemporaryFolder folder;
  const auto o = first_light(folder, "2", 12);
  EXPECT_EQ(o.exit_code, 1);
  EXPECT_THAT(o.out, ::testing::ContainsRegex("speed .* s  "));
  for (const char* part : {"killed", "load", "calibrate"}) {
    EXPECT_THAT(o.out, ::testing::ContainsRegex(std::string(part) + " .* not run: no time left"));
  }
  EXPECT_EQ(o.err, "");
}

TEST(FirstLight, AnythingElseGetsTheUsage) {
  const TemporaryFolder folder;
  const auto o = first_light(folder, "3", 10);
  EXPECT_EQ(o.exit_code, 1);
  EXPECT_THAT(o.err, HasSubstr("usage: scripts/first_light.sh 1|2"));
  EXPECT_THAT(o.err, Not(HasSubstr("pipefail")));
}

}  // namespace
}  // namespace harness
