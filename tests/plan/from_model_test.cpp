// `from_model`: the sizes that a model's training step has.
#include "plan/from_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "support/errors.h"

namespace harness::plan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

config::Experiment experiment_of(const std::string& variable, const std::string& workload) {
  config::Experiment e;
  e.model = {"custom", 2, 64, 4, 256, 32};
  e.baseline.workload = workload;
  e.baseline.global_batch_size = 8;
  e.changes.push_back({variable, "from_model", e.baseline, "file:3:4"});
  return e;
}

std::vector<std::string> values_of(const config::Experiment& e, int ranks) {
  std::vector<std::string> values;
  for (const config::Change& c : with_model_values(e, ranks).changes) values.push_back(c.value);
  return values;
}

TEST(FromModel, SizesAreThoseOfTheStep) {
  config::Experiment e = experiment_of("message_size", "collective");
  e.baseline.layout = {2, 2};
  e.baseline.collective_over = config::CollectiveOver::tensor;
  const auto tensor = values_of(e, 8);
  EXPECT_NE(std::ranges::find(tensor, std::string("8 KiB")), tensor.end());  // 32 rows * 64 * 4 B
  e.baseline.collective = config::CollectiveKind::send_recv;
  e.baseline.collective_over = config::CollectiveOver::pipeline;
  EXPECT_EQ(values_of(e, 8), std::vector<std::string>{"8 KiB"});
  e.baseline.collective = config::CollectiveKind::all_to_all;
  EXPECT_THAT(test::error_of([&] { values_of(e, 8); }),
              AllOf(HasSubstr("file:3:4: from_model: the model's step on this layout has no all_to_all"),
                    HasSubstr("send_recv over pipeline")));
}

TEST(FromModel, ProductsAndAttentionAreThoseOfTheStep) {
  const auto gemms = values_of(experiment_of("gemm", "gemm"), 2);
  // qkv forward: [32, 64] x [64, 192]; each of qkv, projection, fc1, fc2 and head also backward, twice.
  EXPECT_NE(std::ranges::find(gemms, std::string("{m: 32, n: 192, k: 64, transpose: b}")), gemms.end());
  EXPECT_GE(gemms.size(), 10u);
  EXPECT_EQ(values_of(experiment_of("attention_shape", "attention"), 2),
            std::vector<std::string>{"{batch: 1, heads: 4, head_dim: 16, sequence: 32}"});
}

}  // namespace
}  // namespace harness::plan
