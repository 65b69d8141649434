#include "workloads/gpt/parameters.h"

#include <gtest/gtest.h>

#include <map>

namespace harness::gpt {
namespace {

const config::Model model{"m", 4, 20, 4, 52, 6};  // of sizes that leave gaps between the parameters

std::vector<Parameter> with_buckets(std::int64_t bytes, int stages, int stage) {
  config::Settings settings;
  settings.bucket_size_bytes = bytes;
  return parameters(model, settings, {{program::Axis::pipeline, stages}, {program::Axis::tensor, 2}}, stage);
}

TEST(Parameters, AreCutIntoBucketsFromTheEndEachJustLargeEnough) {
  for (const auto& [stages, stage] : {std::pair{1, 0}, std::pair{2, 0}, std::pair{2, 1}}) {
    for (const std::int64_t bytes : {1, 512, 4096, 20000, 1 << 30}) {
      const std::vector<Parameter> list = with_buckets(bytes, stages, stage);
      EXPECT_EQ(list.back().bucket, 0);
      std::int64_t end = list.back().view.offset + list.back().view.count;
      for (std::size_t i = list.size(); i-- > 1;) {
        const std::int64_t size = 4 * (end - list[i].view.offset);
        const bool cut = list[i - 1].bucket != list[i].bucket;
        EXPECT_EQ(cut, size >= bytes) << list[i].name;
        if (!cut) continue;
        EXPECT_EQ(list[i - 1].bucket, list[i].bucket + 1);
        end = list[i].view.offset;
      }
    }
  }
}

TEST(Parameters, LieWhereTheyLieWhateverTheBuckets) {
  const std::vector<Parameter> small = with_buckets(1, 2, 1), whole = with_buckets(1 << 30, 2, 1);
  ASSERT_EQ(small.size(), whole.size());
  for (std::size_t i = 0; i < small.size(); ++i) EXPECT_EQ(small[i].view, whole[i].view);
}

TEST(Parameters, SayHowManyOperationsWriteTheTiedTable) {
  const auto table = [](int stages, int stage) {
    for (const Parameter& p : with_buckets(1, stages, stage)) {
      if (p.id.name == word_embeddings) return p;
    }
    return Parameter{};
  };
  EXPECT_EQ(table(1, 0).writers, 2);  // head and embedding
  EXPECT_FALSE(table(1, 0).tied || table(1, 0).only_added_to);
  EXPECT_EQ(table(2, 0).writers, 1);
  EXPECT_TRUE(table(2, 0).tied && table(2, 0).only_added_to);
  EXPECT_TRUE(table(2, 1).tied && !table(2, 1).only_added_to);
}

}  // namespace
}  // namespace harness::gpt
