// show of several files, in-process, on files written for the test.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "readers_fixture.h"
#include "support/sample_results.h"

namespace harness::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ShowPooled : public Readers {
 protected:
  // show, with one file per ratio of the change to the baseline, then more arguments.
  Said show(const std::vector<double>& ratios, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"show"};
    for (std::size_t run = 0; run < ratios.size(); ++run) {
      arguments.push_back(
          write(fmt::format("r{}.h5", run), test::samples::sweep({"micro_batch_size=2"}, {1, 1, ratios[run]})));
    }
    arguments.insert(arguments.end(), more.begin(), more.end());
    return say(arguments);
  }
};

const std::vector<double> three{0.90, 0.902, 0.898};

TEST_F(ShowPooled, ThreeRunsHaveAVerdict) {
  const Said said = show(three);
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out, StartsWith("3 runs pooled. Fastest proven change: micro_batch_size=2, 10.0 % less time ["));
  EXPECT_THAT(said.out, HasSubstr("Runs: 1 is r0.h5 (2026-01-02T03:04:05Z, 12 rounds); 2 is r1.h5"));
}

TEST_F(ShowPooled, EveryFormatOfATableIsThere) {
  EXPECT_EQ(nlohmann::json::parse(show(three, {"--format", "json"}).out)["schema"], "harness-pooled");
  EXPECT_THAT(show(three, {"--format", "csv"}).out, StartsWith("case,variable,value,verdict,runs,of_runs,ratio,"));
  EXPECT_THAT(show(three, {"--format", "md"}).out, HasSubstr("| case "));
}

TEST_F(ShowPooled, TheTableIsArrangedLikeThatOfOneFile) {
  const Said columns = show(three, {"--columns", "change,runs,verdict"});
  EXPECT_THAT(columns.out, HasSubstr("case                 change  runs  verdict\n"));
  EXPECT_THAT(show(three, {"--color", "always"}).out, HasSubstr("\x1b[32mfaster\x1b[0m"));
  EXPECT_THAT(show(three, {"--columns", "nonsense"}).err, HasSubstr("there is no such column"));
}

TEST_F(ShowPooled, OptionsAboutOneRunAreRefusedInALine) {
  for (const std::vector<std::string>& option : {std::vector<std::string>{"--breakdown"},
                                                 {"--follow"},
                                                 {"--cost", "2.5"},
                                                 {"--run-tokens", "1e9"},
                                                 {"--currency", "EUR"},
                                                 {"--format", "long-csv"}}) {
    const Said said = show(three, option);
    EXPECT_EQ(said.code, 1) << option[0];
    EXPECT_EQ(said.out, "") << option[0];
    EXPECT_THAT(said.err,
                HasSubstr(option[0] + (option[0] == "--format" ? " " + option[1] : "") + " is about one run"));
    EXPECT_EQ(std::ranges::count(said.err, '\n'), 1) << said.err;
  }
}

TEST_F(ShowPooled, WhatIsNoRepeatIsRefusedInALine) {
  const auto a = write("a.h5", test::samples::nothing_moved()), b = write("b.h5", test::samples::nothing_moved());
  store::Result ranks = test::samples::nothing_moved();
  ranks.ranks = 8;
  const Said unlike = say({"show", a, b, write("c.h5", ranks)});
  EXPECT_EQ(unlike.code, 1);
  EXPECT_EQ(unlike.out, "");
  EXPECT_EQ(unlike.err,
            "harness: these files are no runs of one configuration: Numbers of ranks differ: 4 in a.h5, 8 in c.h5. "
            "`compare` compares files that differ\n");
  const Said twice = say({"show", a, b, a});
  EXPECT_EQ(twice.code, 1);
  EXPECT_THAT(twice.err, HasSubstr("hold the same run (a.h5). A run counts once: leave one of them out\n"));
}

TEST_F(ShowPooled, TheExitCodeIsThatOfShow) {
  const auto good = write("good.h5", test::samples::unreliable());
  store::Result quiet = test::samples::sweep({"micro_batch_size=2"}, {1, 1, 0.9});
  const auto a = write("a.h5", quiet), b = write("b.h5", quiet);
  EXPECT_EQ(say({"show", a, b}).code, 0);
  const Said moved = say({"show", a, b, good});
  EXPECT_EQ(moved.code, 4);
  EXPECT_THAT(moved.out, HasSubstr("! good.h5 is unreliable: its control"));
  quiet.state = store::RunState::partial;
  const Said partial = say({"show", a, b, write("c.h5", quiet)});
  EXPECT_EQ(partial.code, 0);  // as that of one file
  EXPECT_THAT(partial.out, HasSubstr("! c.h5 is partial"));
}

TEST_F(ShowPooled, HelpNamesSeveralFiles) {
  EXPECT_THAT(say({"show", "--help"}).out, HasSubstr("several: runs of one"));
}

}  // namespace
}  // namespace harness::cli
