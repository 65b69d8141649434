#include "analysis/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace harness::analysis {
namespace {

using ::testing::FieldsAre;

ConfidenceInterval between(double low, double high) {
  return {.center = (low + high) / 2, .low = low, .high = high, .n = 12, .standard_error = 0.1};
}

TEST(Verdict, TheWholeIntervalDecides) {
  const double e = 0.01, edge = std::log1p(e);
  EXPECT_EQ(verdict_of(between(edge + 1e-9, 1), e), Verdict::slower);
  EXPECT_EQ(verdict_of(between(-1, -edge - 1e-9), e), Verdict::faster);
  EXPECT_EQ(verdict_of(between(-edge + 1e-9, edge - 1e-9), e), Verdict::same);
  EXPECT_EQ(verdict_of(between(0, edge + 1e-9), e), Verdict::unresolved);
  EXPECT_EQ(verdict_of(between(-INFINITY, INFINITY), e), Verdict::unresolved);
  EXPECT_EQ(verdict_of(ConfidenceInterval{}, e), Verdict::none);
}

TEST(Decide, NamesTheReason) {
  const ConfidenceInterval faster = between(-0.3, -0.2);
  const auto judged = [](const ConfidenceInterval& interval, const Evidence& evidence) {
    return decide(interval, 0.01, evidence);
  };
  EXPECT_THAT(judged(faster, {}), FieldsAre(Verdict::faster, Reason::interval));
  EXPECT_THAT(judged(ConfidenceInterval{}, {}), FieldsAre(Verdict::none, Reason::too_few_rounds));
  EXPECT_THAT(judged(faster, {.honoured = false}), FieldsAre(Verdict::not_honoured, Reason::not_honoured));
  EXPECT_THAT(judged(faster, {.within_limit = false}), FieldsAre(Verdict::none, Reason::beyond_limit));
  EXPECT_THAT(judged(faster, {.honoured = false, .within_limit = false}),
              FieldsAre(Verdict::none, Reason::beyond_limit));
  EXPECT_THAT(judged(faster, {.role = store::CaseRole::baseline}), FieldsAre(Verdict::none, Reason::baseline));
  EXPECT_THAT(judged(ConfidenceInterval{}, {.measured = false}), FieldsAre(Verdict::none, Reason::not_measured));
  EXPECT_THAT(judged(ConfidenceInterval{}, {.status = store::CaseStatus::impossible, .measured = false}),
              FieldsAre(Verdict::none, Reason::impossible));
}

TEST(Decide, AControlKeepsTheVerdictOfItsInterval) {
  const Evidence control{.role = store::CaseRole::control, .honoured = false, .within_limit = false};
  EXPECT_EQ(decide(between(0.2, 0.3), 0.01, control).verdict, Verdict::slower);
}

TEST(Decide, ACaseThatFailedLaterKeepsItsVerdictAndIsCalledFailed) {
  const Judgement judgement = decide(between(-0.3, -0.2), 0.01, {.status = store::CaseStatus::failed});
  EXPECT_EQ(judgement.verdict, Verdict::faster);
  EXPECT_EQ(std::string(name_of(judgement)), "failed");
}

TEST(Decide, APredictionHasNoVerdictAndBelowItsErrorNoDirection) {
  constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
  const auto predicted = [&](double log_ratio, const Evidence& evidence) {
    return decide({.center = log_ratio, .low = nothing, .high = nothing}, 0.05, evidence);
  };
  EXPECT_THAT(predicted(-0.2, {.predicted = true}), FieldsAre(Verdict::none, Reason::predicted));
  EXPECT_THAT(predicted(0.048, {.predicted = true}), FieldsAre(Verdict::none, Reason::too_close_to_call));
  EXPECT_THAT(predicted(0.049, {.predicted = true}), FieldsAre(Verdict::none, Reason::predicted));
  EXPECT_THAT(predicted(0, {.role = store::CaseRole::baseline, .predicted = true}),
              FieldsAre(Verdict::none, Reason::baseline));
  EXPECT_THAT(predicted(-0.2, {.status = store::CaseStatus::impossible, .measured = false, .predicted = true}),
              FieldsAre(Verdict::none, Reason::impossible));
}

TEST(Decide, NamesForTables) {
  EXPECT_EQ(std::string(name_of(Judgement{Verdict::same, Reason::interval})), "same");
  EXPECT_EQ(std::string(name_of(Judgement{Verdict::not_honoured, Reason::not_honoured})), "not honoured");
  EXPECT_EQ(std::string(name_of(Judgement{Verdict::none, Reason::too_few_rounds})), "too few rounds");
  EXPECT_EQ(std::string(name_of(Judgement{Verdict::none, Reason::beyond_limit})), "beyond the limit");
}

}  // namespace
}  // namespace harness::analysis
