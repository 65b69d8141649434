#include "analysis/published.h"

#include <gmock/gmock.h>

#include "config/model.h"

namespace harness::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Published, FindsStepsOfTheSameGpuAndPrecision) {
  const config::Model llama = *config::model_preset("llama3-8b");
  const auto said = [&](const std::string& gpu, double tflops, bool predicted = false) {
    return analysis::published_steps({llama, gpu, "bf16", 8, tflops, predicted}).text;
  };
  EXPECT_THAT(said("h100-sxm", 503), AllOf(HasSubstr(" TFLOP/s per GPU, median "),
                                           HasSubstr("like this step); yours: "
                                                     "503, "),
                                           HasSubstr("nearest: LLAMA3-8B")));
  EXPECT_THAT(said("h100-sxm", 503, true), HasSubstr("; yours, predicted: 503, "));
  EXPECT_THAT(said("h100-sxm", 5000), HasSubstr("above all of them"));
  EXPECT_THAT(said("h100-sxm", 50), HasSubstr("median: below"));
  EXPECT_THAT(said("l40s", 37), HasSubstr("nobody in configs/published has this GPU"));
  EXPECT_EQ(said("", 37), "");
  EXPECT_EQ(analysis::published_steps({{}, "h100-sxm", "bf16", 8, 37}).text, "");
}

TEST(Published, SaysHowTheNearestStepDiffers) {
  config::Model llama = *config::model_preset("llama3-8b");
  llama.sequence = 5000;
  EXPECT_THAT(analysis::published_steps({llama, "h100-sxm", "bf16", 24}).text,
              AllOf(HasSubstr("; it has "), HasSubstr(" (yours: 5000), "), HasSubstr(" GPUs (yours: 24)")));
}

TEST(Published, ALineIsOfStepsThatAreNear) {
  const config::Model llama = *config::model_preset("llama3-8b");
  EXPECT_THAT(analysis::published_line({llama, "h100-sxm", "bf16", 8}), StartsWith("published for h100-sxm in bf16: "));
  EXPECT_EQ(analysis::published_line({llama, "l40s", "bf16", 8}), "");
}

TEST(Published, FindsLargeCollectivesOfAsManyNodes) {
  constexpr std::int64_t gib = std::int64_t{1} << 30;
  EXPECT_THAT(analysis::published_busbw("b200", 1, "all_reduce", 2 * gib, 335.45e9), HasSubstr("yours is 50 % of it"));
  EXPECT_EQ(analysis::published_busbw("b200", 1, "all_reduce", 1000, 335e9), "");
  EXPECT_EQ(analysis::published_busbw("l40s", 1, "all_reduce", 2 * gib, 335e9), "");
}

}  // namespace
}  // namespace harness::test
