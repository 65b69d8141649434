// A step of harness itself, written by `harness trace` and read back, has the same breakdown.
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/breakdown.h"
#include "explain/diagnosed.h"
#include "jobs.h"
#include "report/export.h"
#include "support/files.h"
#include "support/sample_results.h"

namespace harness::traces {
namespace {

void expect_same_breakdown(const store::Result& result) {
  const test::TemporaryFolder folder;
  const Report report = read_job({folder.write("step.trace.json", report::trace_json(result, "baseline"))});
  const analysis::CaseBreakdown own = analysis::break_down(result).front();
  ASSERT_EQ(report.gpus.size(), own.ranks.size());
  for (const analysis::Breakdown& b : own.ranks) {
    const auto gpu = std::ranges::find(report.gpus, std::optional<std::int64_t>(b.rank), &TracedGpu::rank);
    ASSERT_NE(gpu, report.gpus.end()) << b.rank;
    const analysis::Breakdown& read = gpu->step.breakdown;
    const double near = 1e-3 * b.step_s;
    EXPECT_NEAR(read.step_s, b.step_s, near);
    for (const Part part : all_parts) {
      EXPECT_EQ(read[part].has_value(), b[part].has_value()) << name_of(part);
      EXPECT_NEAR(read[part].value_or(0), b[part].value_or(0), near) << name_of(part) << " of rank " << b.rank;
      EXPECT_NEAR(read.hidden_s(part), b.hidden_s(part), near) << name_of(part) << ", hidden, of rank " << b.rank;
    }
    ASSERT_EQ(read.kinds.size(), b.kinds.size());
    for (const analysis::KindTime& kind : b.kinds) {
      const auto same = std::ranges::find_if(read.kinds, [&](const auto& k) { return k.is_same_kind(kind); });
      ASSERT_NE(same, read.kinds.end()) << kind.kind << " " << kind.group;
      EXPECT_NEAR(same->owns_s, kind.owns_s, near) << kind.kind << " " << kind.group;
    }
    EXPECT_NEAR(read.parts.sum(), read.step_s, near);
  }
}

class OwnStep : public ::testing::TestWithParam<test::Job> {};

TEST_P(OwnStep, ReadBackHasTheSameBreakdown) {
  store::Result result = test::measured(GetParam(), {});
  expect_same_breakdown(result);
  for (store::ResultSplit& split : result.splits) split.loading_s = 0.4 * split.idle_s;
  expect_same_breakdown(result);
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, OwnStep,
    ::testing::Values(test::Job{}, test::Job{.layout = "tensor_parallel: 1", .overlaps = true},
                      test::Job{.nodes = 4, .layout = "tensor_parallel: 8, pipeline_parallel: 2", .sequences = 8}));

TEST(OwnStep, OfTwoRolesThatOverlap) {
  expect_same_breakdown(test::samples::with_timeline());
}

}  // namespace
}  // namespace harness::traces
