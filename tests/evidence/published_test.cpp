#include "evidence/published.h"

#include <gmock/gmock.h>

#include "config/model.h"

namespace harness::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Published, FindsStepsOfTheSameGpuAndPrecision) {
  const config::Model llama = *config::model_preset("llama3-8b");
  const std::string alike = evidence::published_steps({llama, "h100-sxm", "bf16", 8, 503});
  EXPECT_THAT(alike, AllOf(HasSubstr(" TFLOP/s per GPU, median "), HasSubstr("like this step); yours is"),
                           HasSubstr("nearest: LLAMA3-8B")))
      << alike;
  EXPECT_THAT(evidence::published_steps({llama, "h100-sxm", "bf16", 8, 5000}), HasSubstr("above all of them"));
  EXPECT_THAT(evidence::published_steps({llama, "h100-sxm", "bf16", 8, 50}), HasSubstr("median: below"));
  EXPECT_THAT(evidence::published_steps({llama, "l40s", "bf16", 8, 37}),
              HasSubstr("nobody in configs/published has this GPU"));
  EXPECT_EQ(evidence::published_steps({llama, "", "bf16", 8, 37}), "");
  EXPECT_EQ(evidence::published_steps({{}, "h100-sxm", "bf16", 8, 37}), "");
}

TEST(Published, FindsLargeCollectivesOfAsManyNodes) {
  constexpr std::int64_t gib = std::int64_t{1} << 30;
  EXPECT_THAT(evidence::published_busbw("b200", 1, "all_reduce", 2 * gib, 335.45e9), HasSubstr("yours is 50 % of it"));
  EXPECT_EQ(evidence::published_busbw("b200", 1, "all_reduce", 1000, 335e9), "");
  EXPECT_EQ(evidence::published_busbw("l40s", 1, "all_reduce", 2 * gib, 335e9), "");
}

}  // namespace
}  // namespace harness::test
