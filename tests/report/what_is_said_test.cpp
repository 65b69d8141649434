// Numbers that are easily taken for others are said so that they are not.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "base/text.h"
#include "golden.h"
#include "report/show.h"
#include "support/sample_results.h"

namespace harness::report {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string text_of(const store::Result& result) {
  return show(result, analysis::summarise(result), Format::text, {}, Detail::full);
}

// 20 % less time is 25 % more tokens: both are said, so that neither is taken for the other.
TEST(WhatIsSaid, SaysTimeAndThroughput) {
  for (const double ratio : {0.5, 0.684, 0.8, 0.9}) {
    const store::Result result = test::samples::sweep({"a=1"}, {1, 1, ratio});
    const analysis::Summary summary = analysis::summarise(result);
    const double found = summary.cases[2].effect->ratio;
    EXPECT_THAT(headline(result, summary), AllOf(HasSubstr(fmt::format("a=1, {:.1f} % less time [", 100 * (1 - found))),
                                                 HasSubstr(fmt::format("], {:.3g} x the throughput", 1 / found))));
  }
}

// The words state the threshold by which verdict_of() goes.
TEST(WhatIsSaid, TheThresholdIsWhatItIs) {
  for (const double effect : {0.01, 0.1, 0.3}) {
    const double above = std::log1p(effect), below = std::log1p(1 / (1 + effect) - 1);
    const auto verdict = [&](double log_ratio) {
      return analysis::verdict_of({.center = log_ratio, .low = log_ratio - 1e-9, .high = log_ratio + 1e-9}, effect);
    };
    EXPECT_EQ(verdict(above + 1e-6), analysis::Verdict::slower);
    EXPECT_EQ(verdict(above - 1e-6), analysis::Verdict::same);
    EXPECT_EQ(verdict(below - 1e-6), analysis::Verdict::faster);
    EXPECT_EQ(verdict(below + 1e-6), analysis::Verdict::same);
  }
  EXPECT_EQ(analysis::threshold_words(0.1), "+10 % or -9.09 %");
  EXPECT_EQ(analysis::within_threshold_words(0.1), "between -9.09 % and +10 %");
  store::Result result = test::samples::sweep({"a=1"}, {1, 1, 0.9});
  result.smallest_effect = 0.1;
  EXPECT_THAT(text_of(result), HasSubstr("clear +10 % or"));
}

// Where the peak of a case is another than the baseline's, an MFU that falls is no loss.
TEST(WhatIsSaid, MfuOfAnotherPeakHasAFootnote) {
  store::Result result = test::samples::sweep({"precision=bf16"}, {1, 1, 0.7});
  EXPECT_THAT(text_of(result), Not(HasSubstr("MFU is a share of the peak of a case's own")));
  result.cases[2].peak_flops_per_rank *= 2;
  EXPECT_THAT(replaced(text_of(result), {{'\n', " "}}),
              HasSubstr("MFU is a share of the peak of a case's own precision: precision=bf16 has 90.00 GFLOP/s, the "
                        "baseline 45.00 GFLOP/s."));
}

// A verdict that rests on a part of the blocks says so where it stands.
TEST(WhatIsSaid, BlocksThatCountNothingAreMarkedAtTheVerdict) {
  store::Result result = test::samples::sweep({"precision=bf16"}, {1, 1, 0.7});
  analysis::Summary summary = analysis::summarise(result);
  summary.levels.front().set_aside.push_back({2, 2, 6});
  const std::string text = replaced(write_text(show_document(result, summary)), {{'\n', " "}});
  EXPECT_THAT(text, AllOf(HasSubstr("faster [1]"),
                          HasSubstr("[1] precision=bf16: 2 of its 6 blocks count nothing, too far off its others")));
}

// Both codes of the column of rounds are explained.
TEST(WhatIsSaid, CodesOfRoundsAreExplained) {
  store::Result result = test::samples::everything();
  const std::string text = text_of(result);
  EXPECT_THAT(text, AllOf(HasSubstr(" 11/12  faster"),
                          HasSubstr("\n11/12: change and verdict rest on 11 of the 12 rounds. ~N: about N ")));
}

// Another collective is not slower because it moves more: its verdict is per byte, and says so.
TEST(WhatIsSaid, VerdictsOnOtherCollectivesArePerByte) {
  store::Result result = test::samples::sweep({"in_place=false", "collective=all_gather"}, {1, 1, 1.2, 0.7});
  for (std::int32_t i = 0; i < result.case_count(); ++i) {
    const double factor = result.cases[static_cast<std::size_t>(i)].variable == "collective" ? 0.75 : 1.5;
    result.points.push_back({i, "all_reduce", 20, 4194304, factor, 0, "", "", 1});
  }
  for (store::ResultCase& row : result.cases) row.tokens_per_step = row.model_flop_per_step = 0;
  const std::string text = text_of(result);
  EXPECT_THAT(text, AllOf(HasSubstr("change/byte"), HasSubstr("slower per byte"), HasSubstr("busbw ")));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("in_place=false")) {
      EXPECT_THAT(line, ::testing::EndsWith("slower"));
    }
    if (line.starts_with("collective=all_gather ")) {
      EXPECT_THAT(line, ::testing::EndsWith("slower per byte"));
    }
  }
}

}  // namespace
}  // namespace harness::report
