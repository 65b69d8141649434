#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "command.h"
#include "support/files.h"
#include "support/paths.h"

namespace harness {
namespace {

using test::TemporaryFolder;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// What would run on a GPU, rehearsed on the cpu backend.
test::Outcome first_light(const TemporaryFolder& folder, const std::string& command, int seconds,
                          const std::string& program = test::program_path()) {
  return test::run("env BACKEND=cpu PYTHON=false HARNESS=" + program + " OUT=" + folder / "out" + " KEPT=" +
                   folder / "kept" + " LIMIT=" + std::to_string(seconds) + " bash scripts/first_light.sh " + command);
}

TEST(FirstLight, TheFirstCommandPassesWithoutAGpu) {
  const TemporaryFolder folder;
  const auto o = first_light(folder, "1", 1000);
  EXPECT_EQ(o.exit_code, 0) << o.out << o.err << test::text_of(folder / "kept/layouts.txt");
  for (const char* part : {"operations", "training", "layouts"}) {
    EXPECT_THAT(o.out, ContainsRegex(std::string(part) + " .* passed"));
  }
  EXPECT_THAT(o.out, HasSubstr("not run: needs a GPU and compute-sanitizer"));
  EXPECT_EQ(o.err, "");
  EXPECT_EQ(test::text_of(folder / "out/table1.txt"), o.out);
  EXPECT_THAT(test::text_of(folder / "out/training.txt"), HasSubstr("reference: Llama-style gradients fp32: passed"));
  EXPECT_FALSE(test::text_of(folder / "out/kept1.tgz").empty());
}

TEST(FirstLight, TheSecondCommandMeasuresAndKillsAWorker) {
  const TemporaryFolder folder;
  const auto o = first_light(folder, "2", 1000);
  // Whether the doctor and the calibration pass depends on what else the machine does.
  for (const char* part : {"speed", "again", "killed"}) {
    EXPECT_THAT(o.out, ContainsRegex(std::string(part) + " .* passed")) << o.err;
  }
  EXPECT_THAT(o.out, Not(HasSubstr("killed       not exactly one case")));
  EXPECT_THAT(o.out, ContainsRegex("tokens/s +harness [1-9][0-9]*, PyTorch 0, harness again [1-9]"));
  EXPECT_THAT(test::text_of(folder / "out/speed.txt"), HasSubstr("attention=unfused"));
}

TEST(FirstLight, WhatHasNoTimeLeftIsNotRun) {
  const TemporaryFolder folder;
  const auto o = first_light(folder, "2", 6);
  EXPECT_EQ(o.exit_code, 1);
  for (const char* part : {"killed", "load", "calibrate"}) {
    EXPECT_THAT(o.out, ContainsRegex(std::string(part) + " .* not run: no time left"));
  }
}

TEST(FirstLight, AProgramThatDoesNotRunIsSaid) {
  const TemporaryFolder folder;
  const auto o = first_light(folder, "1", 100, "/bin/false");
  EXPECT_EQ(o.exit_code, 1);
  EXPECT_THAT(o.err, HasSubstr("/bin/false does not run"));
}

TEST(FirstLight, AnythingElseGetsTheUsage) {
  const TemporaryFolder folder;
  const auto o = first_light(folder, "3", 10);
  EXPECT_EQ(o.exit_code, 1);
  EXPECT_THAT(o.err, HasSubstr("usage: scripts/first_light.sh [1|2]"));
  EXPECT_THAT(o.err, Not(HasSubstr("pipefail")));
}

}  // namespace
}  // namespace harness
