#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/cuda/attention.h"
#include "fake.h"

namespace harness::cuda {
namespace {

using ::testing::HasSubstr;

program::AttentionShape shape_of(std::int64_t batch, std::int64_t heads, std::int64_t width, std::int64_t length) {
  program::AttentionShape s;
  s.batch = batch;
  s.heads = heads;
  s.head_dim = width;
  s.query_length = s.key_length = length;
  s.query_stride = s.key_stride = 3 * heads * width;  // packed QKV
  return s;
}

TEST(Cudnn, AVersionThatIsKnownToBeWrongForAShapeIsRefusedForThatShapeAlone) {
  for (const std::int64_t sequence : {16, 64, 100, 128, 1000, 1024, 2048, 4095, 8192}) {
    const program::AttentionShape shape = shape_of(2, 4, 64, sequence);
    EXPECT_EQ(cudnn_too_old(91501, shape), "");
    EXPECT_EQ(cudnn_too_old(91900, shape), "");
    for (const std::size_t old : {std::size_t{90000}, std::size_t{91400}, std::size_t{91500}}) {
      const std::string why = cudnn_too_old(old, shape);
      EXPECT_EQ(why.empty(), sequence % 128 == 0) << sequence;
      if (!why.empty()) {
        EXPECT_THAT(why, HasSubstr("before 9.15.1"));
      }
    }
  }
  program::AttentionShape keys_of_another_length = shape_of(2, 4, 64, 256);
  keys_of_another_length.key_length = 200;
  EXPECT_THAT(cudnn_too_old(91500, keys_of_another_length), HasSubstr("this is cuDNN 9.15.0"));
}

TEST(Cudnn, PackedDocumentsAreFusedWhereTheBackwardPassCanBe) {
  const FusedShape packed{shape_of(1, 4, 64, 128), program::DType::bf16, 3};
  FusedShape whole = packed;
  whole.documents = 0;
  for (const int major : {8, 9, 10, 12}) {
    fake::Settings settings;
    settings.compute_major = major;
    fake::reset(settings);
    EXPECT_EQ(fused_attention_unavailable(packed).empty(), major == 9 || major == 10) << major;
    EXPECT_EQ(fused_attention_unavailable(whole), "") << major;
  }
}

}  // namespace
}  // namespace harness::cuda
