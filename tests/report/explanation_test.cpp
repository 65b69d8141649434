#include "full_result.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "golden.h"
#include "report/sections.h"

namespace harness::report {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string text_of_section(const analysis::Explanation& explanation, const char* backend = "cuda") {
  store::Result result = test::samples::full();
  result.backend = backend;
  analysis::Findings findings;
  findings.explanation = explanation;
  Document document;
  document.headline = diagnosis_words(explanation);
  document.sections.push_back(explanation_section(result, findings));
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

// A step that is predicted to take 0.3 s, with an error of 5.6 %.
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
  // Hidden, or made up for: then it is no reason.
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

// As a section of show, below the headline, and of the page.
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
