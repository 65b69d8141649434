#include "explanation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "full_result.h"
#include "golden.h"
#include "report/sections.h"
#include "report/show.h"

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

TEST(Explanation, OfAPredictionSaysSo) {
  analysis::Explanation predicted = test::samples::explanation();
  predicted.of_prediction = true;
  EXPECT_THAT(text_of_section(predicted),
              AllOf(HasSubstr("Predicted with its faults against predicted without"), Not(HasSubstr("measured"))));
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

TEST(Explanation, WithoutACauseSaysWhatItIs) {
  analysis::Explanation explained = test::samples::explanation();
  explained.diagnosis->causes.clear();
  EXPECT_THAT(diagnosis_words(explained), HasSubstr("33 % longer than predicted, and no fault"));
  explained.diagnosis->measured_s = 0.305;
  EXPECT_THAT(diagnosis_words(explained), HasSubstr("as fast as predicted, within the expected error of 5.6 %"));
  explained.diagnosis->measured_s = 0.38;
  explained.diagnosis->compute_factor = 1.3;
  explained.cases[0].kinds[1].measured_takes_s = 0.2;
  EXPECT_THAT(diagnosis_words(explained), HasSubstr("matmul runs at 75 % of predicted, on all ranks alike"));
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
