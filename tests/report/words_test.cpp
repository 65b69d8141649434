// The headline of a report, and the wording of names and numbers, so that similar numbers cannot be confused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "full_result.h"
#include "golden.h"
#include "report/words.h"

namespace harness::report {
namespace {

using test::operations;
using ::testing::HasSubstr;

TEST(Headline, SaysWhatIsProvenAndNoMore) {
  EXPECT_EQ(said(test::samples::sweep({"a=1", "b=1"}, {1, 1, 1.05, 1.2})).substr(0, 80),
            "No change is proven faster than the baseline; the slowest: b=1, 20.0 % more time");
  EXPECT_EQ(said(test::samples::sweep({"a=1", "b=1"}, {1, 1, 1.0102, 1})),
            "Nothing is proven to move beyond +1 % or -0.99 %; 1 the same, 1 unresolved.");
  EXPECT_EQ(said(test::samples::sweep({}, {1, 1})), "Only the baseline was asked for: nothing to compare.");
  EXPECT_EQ(said(test::samples::sweep({"a=1"}, {1, 1, 0.5}, 1)), "Too few rounds for any verdict.");
  store::Result another = test::samples::sweep({"a=1", "b=1"}, {1, 1, 0.5, 1}, 1);
  another.cases[3].tokens_per_step *= 2;
  EXPECT_EQ(said(another), "Too few rounds for any verdict.");
  another = test::samples::sweep({"a=1", "b=1", "c=1"}, {1, 1, 1, 3, 1});
  for (const int c : {3, 4}) another.cases[static_cast<std::size_t>(c)].tokens_per_step *= 2;
  EXPECT_THAT(said(another), HasSubstr(" Another training, per token: c=1 50.0 % less time ["));
  EXPECT_THAT(said(another), HasSubstr("], 1 slower."));
  store::Result ignored = test::samples::sweep({"a=1"}, {1, 1, 0.5});
  ignored.nccl_facts.push_back({2, "not honoured", "nccl_algo"});
  EXPECT_EQ(said(ignored), "No change has a verdict; the table of cases says why.");
  store::Result later = test::samples::sweep({"a=1", "b=1"}, {1, 1, 0.5, 0.8});
  later.cases[2].status = store::CaseStatus::failed;
  EXPECT_EQ(said(later).substr(0, 27), "Fastest proven change: b=1,");
  EXPECT_EQ(analysis::find_all(later).best_case, 3);
  store::Result broken = test::samples::sweep({"a=1"}, {1, 1, 1});
  for (store::ResultBlock& block : broken.blocks) block.status = store::BlockStatus::failed;
  for (store::ResultCase& row : broken.cases) {
    row.status = store::CaseStatus::failed;
    row.reason = "rank 0 on node1: exec: nsys: not found";
  }
  EXPECT_EQ(said(broken), "Nothing could be compared: baseline failed: rank 0 on node1: exec: nsys: not found");
}

TEST(Headline, NamesLostBlocks) {
  store::Result result = test::samples::sweep({"a=1", "b=1"}, {1, 1, 0.9, 1});
  for (const int round : {2, 5}) {
    store::ResultBlock& block = *test::samples::block_of(result, round, 2);
    block.status = store::BlockStatus::failed;
    block.reason = "rank 1 on vm: worker killed by signal 9 (kill) while it ran steps; not by harness";
  }
  EXPECT_THAT(said(result),
              ::testing::EndsWith(" Lost: 2 blocks, the first of a=1 (rank 1 on vm: worker killed by signal 9 (kill) "
                                  "while it ran steps)."));
}

TEST(Headline, OfSizesSaysWhatWasReached) {
  const std::string with_setting = said(operations({"message_size=1 GB", "in_place=false"}, {1, 1, 100, 1.2}, 1.5));
  EXPECT_THAT(with_setting, HasSubstr("12.9 ms at 1 kB. in_place=false: slower at 1 of 1 size."));
  EXPECT_THAT(said(operations({"message_size=1 GB"}, {1, 1, 0.05}, 1.5)),
              ::testing::StartsWith("Highest busbw: 23"));  // of 2330 GB/s
  EXPECT_THAT(said(operations({"gemm=large"}, {1, 1, 0.5}, 0)),
              ::testing::MatchesRegex("Highest rate: [0-9.]+ GFLOP/s at large. Shortest time: [0-9.]+ ms at large\\."));
}

TEST(EffectWords, AnIntervalThatIsFarAwaySaysSo) {
  EXPECT_EQ(interval_words(1.01, 12), "[+1.0 %, over +1000 %]");
  EXPECT_EQ(interval_words(11.5, 1069), "[over +1000 %, over +1000 %]");
  EXPECT_EQ(interval_words(0.01, 0.02), "[-99.0 %, -98.0 %]");
}

TEST(Scales, FourDigitsInAUnitThatFitsTheSmallest) {
  const std::vector<double> seconds{0.0123456, 2.5};
  const Scale scale = scale_of_seconds(seconds);
  EXPECT_EQ(scale.unit, "ms");
  EXPECT_EQ(scale.print(0.0123456), "12.35");
  EXPECT_EQ(scale.print(2.5), "2500");
  EXPECT_EQ(scale.print(0.0009), "0.900");
  EXPECT_EQ(signed_percent(-0.00001), "0.0 %");
  EXPECT_EQ(signed_percent(-0.1234), "-12.3 %");
}

// Every case has a size; it names the case only if the size is the change.
TEST(CaseLabel, ASizeIsCalledWhatItIs) {
  store::Result result = test::samples::sweep({"gemm={m: 512}", "precision=bf16", "gemm={m: 3}"}, {1, 1, 1.5, 2, 2});
  for (int c = 0; c < 5; ++c) result.points.push_back({c, "gemm", 10, 1000, 0, 0, "", c < 4 ? "qkv, forward" : ""});
  const analysis::Summary summary = analysis::summarise(result);
  const std::vector<std::string> labels{"baseline", "baseline_again", "qkv, forward", "precision=bf16", "gemm={m: 3}"};
  for (std::size_t i = 0; i < labels.size(); ++i) EXPECT_EQ(label_of(result, summary.cases[i]), labels[i]);
}

using ::testing::AllOf;

TEST(WhatIsSaid, TheThresholdIsWhatItIs) {
  EXPECT_EQ(analysis::threshold_words(0.1), "+10 % or -9.09 %");
  EXPECT_EQ(analysis::within_threshold_words(0.1), "between -9.09 % and +10 %");
  EXPECT_EQ(interval_heading(0.95), "95 % interval");
  EXPECT_EQ(interval_heading(0.9999), "99.99 % interval");
  store::Result result = test::samples::sweep({"a=1"}, {1, 1, 0.9});
  result.smallest_effect = 0.1;
  EXPECT_THAT(shown(result), HasSubstr("clear +10 % or"));
}

// A verdict from only some of the blocks is marked as such.
TEST(WhatIsSaid, BlocksThatCountNothingAreMarkedAtTheVerdict) {
  store::Result result = test::samples::sweep({"precision=bf16"}, {1, 1, 0.7});
  analysis::Summary summary = analysis::summarise(result);
  summary.levels.front().set_aside.push_back({2, 2, 6});
  const std::string text = replaced(write_text(show_document(result, summary)), {{'\n', " "}});
  EXPECT_THAT(text, AllOf(HasSubstr("faster [1]"), HasSubstr("[1] without 2 of its 6 blocks, too far off its others")));
  summary.levels.front().set_aside = {{0, 1, 24}};
  EXPECT_THAT(write_text(show_document(result, summary)),
              HasSubstr("[1] without 1 of its 24 blocks (the control's included), too far off its others"));
}

using ::testing::Not;

std::string text_of_section(const analysis::Explanation& explanation, const char* backend = "cuda") {
  store::Result result = test::samples::full();
  result.backend = backend;
  analysis::Findings findings;
  findings.explanation = explanation;
  Document document = with_section(explanation_section(result, findings));
  document.headline = diagnosis_words(explanation);
  return write_text(document);
}

TEST(Explanation, Text) {
  test::expect_golden("explanation.txt", text_of_section(test::samples::explanation()));
}

TEST(Explanation, OfAPredictionWithoutFaultsThereIsNothingToSay) {
  analysis::Explanation predicted = test::samples::explanation();
  predicted.cases[0].measured_s = predicted.cases[0].predicted_s;
  EXPECT_NE(text_of_section(predicted).find("matmul"), std::string::npos);
  predicted.of_prediction = true;
  EXPECT_EQ(diagnosis_words(predicted), "");
  EXPECT_EQ(text_of_section(predicted).find("matmul"), std::string::npos);
}

TEST(Explanation, SaysWhyThereIsNone) {
  analysis::Explanation none;
  none.why_none = "nothing says what its GPUs promise";
  EXPECT_THAT(text_of_section(none), HasSubstr("There is no prediction to hold it against: nothing says"));
  EXPECT_THAT(text_of_section(none, "cpu"), Not(HasSubstr("prediction")));
}

TEST(Explanation, SaysWhatHasNoPredictionAndWhyThereIsNoDiagnosis) {
  analysis::Explanation explained = test::samples::explanation();
  explained.not_predicted = {
      {1, "a prediction does not know a"}, {2, "too large"}, {3, "a prediction does not know a"}};
  const store::Result result = test::samples::full();
  const auto name = [&](std::size_t i) { return result.cases.at(i).name; };
  EXPECT_THAT(text_of_section(explained), AllOf(HasSubstr("Without a prediction\n"), Not(HasSubstr("no diagnosis")),
                                                HasSubstr(fmt::format("- {}: a prediction does not know a\n", name(1))),
                                                HasSubstr(fmt::format("- {}: too large\n", name(2)))));
  explained.diagnosis.reset();
  explained.why_no_diagnosis = "the baseline has no profiled step";
  EXPECT_THAT(text_of_section(explained), HasSubstr("There is no diagnosis: the baseline has no profiled step."));
  explained.cases.clear();
  explained.why_none = "a prediction does not know a";
  EXPECT_THAT(text_of_section(explained), AllOf(HasSubstr("to hold it against: a prediction does not know a."),
                                                Not(HasSubstr("The last three columns"))));
}

// A step with a predicted time of 0.3 s and an expected error of 5.6 %.
class WithoutACause : public ::testing::Test {
 protected:
  WithoutACause() { diagnosis_.causes.clear(); }
  std::string words(double measured_s, double explained_s = 0.3, double compute_factor = 1) {
    diagnosis_.measured_s = measured_s;
    diagnosis_.explained_s = explained_s;
    diagnosis_.compute_factor = compute_factor;
    return diagnosis_words(explained_);
  }

  analysis::Explanation explained_ = test::samples::explanation();
  analysis::Diagnosis& diagnosis_ = *explained_.diagnosis;
  std::vector<analysis::KindCompared>& kinds_ = explained_.cases[0].kinds;
};

TEST_F(WithoutACause, AStepIsAsFastAsPredictedOrSlowerOrFaster) {
  EXPECT_EQ(words(0.305),
            "Diagnosis: as fast as predicted, within the expected error of 5.6 % (measured 305 ms, healthy 300 ms).");
  EXPECT_THAT(words(0.316), HasSubstr("as fast as predicted"));
  EXPECT_THAT(words(0.284), HasSubstr("as fast as predicted"));
  EXPECT_THAT(words(0.4), HasSubstr("33 % longer than predicted, and no fault that is known here looks like it (mea"));
  EXPECT_THAT(words(0.27), HasSubstr("the step takes 10 % less than predicted, more than the expected error of 5.6 %: "
                                     "its hardware file or the calibration promises too little (measured 270 ms, "));
  explained_.of_prediction = true;
  EXPECT_THAT(words(0.305), HasSubstr("as fast as predicted, within the expected error of 5.6 % (with its faults 305"));
}

TEST_F(WithoutACause, SlowComputingExplainsAllOrAPart) {
  kinds_[1].measured_takes_s = kinds_[1].measured_owns_s = 0.2;
  EXPECT_THAT(
      words(0.38, 0.375, 1.3),
      AllOf(HasSubstr("Diagnosis: no fault of the cluster; computation runs at 77 % of predicted, on all ranks alike, "
                      "a matter of power, clocks or the software, which explains 75.0 ms of the 80.0 ms that "
                      "are too long (measured 380 ms, healthy 300 ms)."),
            Not(HasSubstr("rest"))));
  EXPECT_THAT(words(0.6, 0.375, 1.3), AllOf(HasSubstr("Diagnosis: computation runs at 77 %"),
                                            Not(HasSubstr("no fault of")), HasSubstr("explains 75.0 ms of the 300 ms"),
                                            HasSubstr("The rest looks like no fault that is known here.")));
  EXPECT_THAT(words(0.38, 0.5, 1.3), HasSubstr("explains 80.0 ms of the 80.0 ms"));
  // Slow computation that is hidden or compensated is not a cause.
  EXPECT_THAT(words(0.4, 0.3, 1.3), HasSubstr("33 % longer than predicted, and no fault"));
  EXPECT_THAT(words(0.305, 0.3, 1.3), HasSubstr("as fast as predicted"));
}

TEST_F(WithoutACause, StepsWithoutATimeHaveNoWords) {
  diagnosis_.healthy_s = 0;
  EXPECT_EQ(words(0.3), "");
  diagnosis_.healthy_s = 0.3;
  EXPECT_EQ(words(0), "");
}

TEST(Explanation, SaysWhatACauseLeaves) {
  analysis::Explanation explained = test::samples::explanation();
  EXPECT_THAT(diagnosis_words(explained), Not(HasSubstr("unexplained")));
  explained.diagnosis->explained_s = 0.35;
  EXPECT_THAT(diagnosis_words(explained),
              HasSubstr("healthy 300 ms. 50.0 ms of its time remain unexplained. harness doctor"));
}

// A section of show and of the page, summarised below the headline.
TEST(Explanation, StandsInTheBreakdown) {
  const store::Result result = test::samples::full();
  analysis::Findings findings = analysis::find_all(result);
  findings.explanation = test::samples::explanation(test::samples::hostile);
  const Document document = breakdown_document(result, findings);
  ASSERT_FALSE(document.notices.empty());
  EXPECT_THAT(document.notices.front().text, HasSubstr("has 50 % of its network (slow_link), or the PCIe links of"));
  EXPECT_EQ(document.notices.front().section, explanation_id);
  EXPECT_THAT(write_text(document), Not(HasSubstr("\x1b")));
  findings.explanation.reset();
  EXPECT_TRUE(breakdown_document(result, findings).notices.empty());
}

}  // namespace
}  // namespace harness::report
