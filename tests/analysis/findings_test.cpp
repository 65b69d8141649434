#include "analysis/findings.h"

#include <gtest/gtest.h>

#include "support/sample_results.h"

namespace harness::analysis {
namespace {

TEST(Findings, MoreRanksAreNoImprovement) {
  const Findings both = find_all(test::samples::sweep({"ranks=2", "micro_batch_size=2"}, {1, 1, 0.5, 0.8}));
  ASSERT_NE(both.best(), nullptr);
  EXPECT_EQ(both.best()->name, "micro_batch_size=2");
  EXPECT_EQ(find_all(test::samples::sweep({"ranks=2"}, {1, 1, 0.5})).best(), nullptr);
}

TEST(Findings, NothingIsBestWhereTheControlMoved) {
  EXPECT_EQ(find_all(test::samples::unreliable()).best(), nullptr);
}

}  // namespace
}  // namespace harness::analysis
