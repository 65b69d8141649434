#include "report/case_label.h"

#include <gtest/gtest.h>

#include "support/sample_results.h"

namespace harness::report {
namespace {

TEST(CaseLabel, ShortNamesAreThoseOfLayouts) {
  EXPECT_EQ(short_layout("layout={tensor_parallel: 2, pipeline_parallel: 1}"), "TP2");
  EXPECT_EQ(short_layout("layout={tensor_parallel: 8, pipeline_parallel: 16}"), "TP8 PP16");
  EXPECT_EQ(short_layout("layout={tensor_parallel: 1, pipeline_parallel: 1}"), "TP1 PP1");
  EXPECT_EQ(short_layout("micro_batch_size=2"), "");
}

// Every case has a size, and only where the size is the change it says what the case is.
TEST(CaseLabel, ASizeIsCalledWhatItIs) {
  store::Result result = test::samples::sweep({"gemm={m: 512}", "precision=bf16", "gemm={m: 3}"}, {1, 1, 1.5, 2, 2});
  for (int c = 0; c < 5; ++c) result.points.push_back({c, "gemm", 10, 1000, 0, 0, "", c < 4 ? "qkv, forward" : ""});
  const analysis::Summary summary = analysis::summarise(result);
  const std::vector<std::string> labels{"baseline", "baseline_again", "qkv, forward", "precision=bf16", "gemm={m: 3}"};
  for (std::size_t i = 0; i < labels.size(); ++i) EXPECT_EQ(label_of(result, summary.cases[i]), labels[i]);
}

}  // namespace
}  // namespace harness::report
