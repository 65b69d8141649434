#include "workloads/gpt/parameters.h"

#include <gtest/gtest.h>

#include "config/experiment.h"
#include "gpt_jobs.h"

namespace harness::gpt {
namespace {

const config::Model model{"m", 4, 20, 4, 52, 6};  // these sizes leave gaps between parameters

std::vector<Parameter> with_buckets(std::int64_t bytes, int stages, int stage) {
  config::Settings settings;
  settings.bucket_size_bytes = bytes;
  return gpt::parameters(model, settings, {{program::Axis::pipeline, stages}, {program::Axis::tensor, 2}}, stage);
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

// Counts the parameters of the whole model, each tensor once.
std::int64_t parameters_of(const config::Model& m, const program::Layout& layout = {}) {
  std::int64_t end = 0;
  for (int stage = 0; stage < layout[program::Axis::pipeline]; ++stage) {
    for (const Parameter& p : gpt::parameters(m, {}, layout, stage)) {
      std::int64_t count = 0;
      for (const Slice& s : p.slices) count += s.outer * s.full * s.inner;
      EXPECT_EQ(p.view.count, p.count());
      if (p.tied && p.first_index == 0 && stage > 0) continue;  // the head's copy of the table
      EXPECT_EQ(p.first_index, end) << m.name << ", " << p.name;
      end += count;
    }
  }
  return end;
}

TEST(Parameters, OfPresetsAreAsManyAsWerePublished) {
  const std::vector<double> millions{125, 350, 760, 1300, 2700, 6700, 13000, 175000, 8000, 70000, 405000};
  const std::vector<std::string> names = config::model_preset_names();
  ASSERT_EQ(names.size(), millions.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const config::Model m = *config::model_preset(names[i]);
    EXPECT_EQ(m.hidden % m.heads, 0) << names[i];
    EXPECT_NEAR(static_cast<double>(parameters_of(m)) / 1e6 / millions[i], 1, 0.05) << names[i];
  }
  EXPECT_EQ(parameters_of(*config::model_preset("llama3-8b")), 8'030'261'248);
  EXPECT_EQ(parameters_of(*config::model_preset("llama3-70b")), 70'553'706'496);
  EXPECT_EQ(parameters_of(*config::model_preset("llama3-405b")), 405'853'388'800);
}

TEST(Parameters, NumberTheWholeModelOnceWhateverItsOptions) {
  program::Layout split;
  split[program::Axis::tensor] = 2;
  split[program::Axis::pipeline] = 3;
  for (const config::Model& m : workloads::mixtures()) EXPECT_EQ(parameters_of(m, split), parameters_of(m)) << m.name;
}

TEST(ShardedBuckets, AreEqualPartsThatBeginWhereAVectorLoadMay) {
  for (const int dp : {2, 3, 8}) {
    for (const int stage : {0, 1}) {
      for (const std::int64_t bytes : {1024, 64 << 10, 1 << 30}) {
        workloads::Job j = workloads::sharded(2, 2, dp);
        j.model.hidden = 20;  // leaves gaps between the parameters
        j.settings.bucket_size_bytes = bytes;
        const auto list = gpt::parameters(j.model, j.settings, j.layout, stage);
        const auto buckets = bucket_places(list, dp);
        std::int64_t end = 0;
        for (std::size_t i = buckets.size(); i-- > 0;) {
          EXPECT_EQ(buckets[i].offset, end);
          EXPECT_EQ(buckets[i].count % (32 * dp), 0);
          end = buckets[i].offset + buckets[i].count;
        }
        for (const auto& p : list) {
          EXPECT_GE(p.view.offset, buckets[p.bucket].offset) << p.name;
          EXPECT_LE(p.view.offset + p.view.count, buckets[p.bucket].offset + buckets[p.bucket].count) << p.name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace harness::gpt
