#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/cuda/attention.h"
#include "base/error.h"
#include "fake.h"

namespace harness::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// An H200 as cuDNN writes devices down, by hand (cuDNN 9.19 names what is missing). No such device is needed.
constexpr const char* h200 = R"({"deviceVer": 900, "driverVer": 13000, "cudaDeviceId": 0, "regsPerBlock": 65536,
  "multiProcessorCount": 132, "warpSize": 32, "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
  "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024,
  "maxThreadsPerSM": 2048, "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
  "pciDeviceId": 0, "isTccDriver": 0, "supportCoopLaunch": 1, "totalGlobalMem": 150754820096,
  "smClockRateKHz": 1980000, "memClockRateKHz": 3201000, "l2CacheSize": 52428800, "deviceName": "NVIDIA H200"})";

// What cuDNN proposes. Without a driver it names each engine that takes the graph and says that only libcuda is
// missing to build it; with one, it lists them.
std::string proposals(const program::AttentionShape& shape, bool backward) {
  try {
    std::string all;
    for (const std::string& name : fused_attention_kernels(shape, backward, h200)) all += name + "\n";
    return all;
  } catch (const Error& e) {
    return e.what();
  }
}

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

class FusedAttention : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string why = fused_attention_unavailable(shape_of(2, 4, 8, 16), program::DType::bf16);
    if (!why.empty()) GTEST_SKIP() << why;
    fake::reset();
  }
};

TEST_F(FusedAttention, CudnnHasEnginesForHopperForwardAndBackward) {
  // The last is the PyTorch reference's small model.
  for (const program::AttentionShape& s :
       {shape_of(16, 16, 128, 2048), shape_of(1, 16, 64, 1024), shape_of(2, 4, 128, 8192), shape_of(2, 4, 8, 16)}) {
    for (const bool backward : {false, true}) {
      const std::string text = proposals(s, backward);
      const bool listed = text.find("eng") == 0;
      const bool accepted =
          text.find("engineId") != std::string::npos && text.find("libcuda == nullptr") != std::string::npos;
      EXPECT_TRUE(listed || accepted) << text;
    }
  }
}

TEST_F(FusedAttention, CudnnHasEnginesForGroupsOfQueries) {
  program::AttentionShape s = shape_of(2, 32, 128, 8192);
  s.group = 4;
  s.query_stride = s.key_stride = (32 + 2 * 8) * 128;
  for (const bool backward : {false, true}) {
    const std::string text = proposals(s, backward);
    const bool accepted =
        text.find("engineId") != std::string::npos && text.find("libcuda == nullptr") != std::string::npos;
    EXPECT_TRUE(text.find("eng") == 0 || accepted) << text;
  }
}

TEST_F(FusedAttention, CudnnRefusesWhatItCannot) {
  const std::string text = proposals(shape_of(1, 2, 7, 64), false);  // rows that are no multiple of 16 bytes
  EXPECT_THAT(text, Not(HasSubstr("libcuda == nullptr")));
  EXPECT_THAT(text, HasSubstr("fused attention"));
}

}  // namespace
}  // namespace harness::cuda
