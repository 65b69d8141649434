#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "backend/cuda/attention.h"
#include "config/experiment.h"
#include "fake.h"
#include "support/errors.h"
#include "support/paths.h"

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
    const AttentionForm form{shape_of(2, 4, 64, sequence), program::DType::bf16};
    EXPECT_EQ(cudnn_too_old(91501, form), "");
    EXPECT_EQ(cudnn_too_old(91900, form), "");
    for (const std::size_t old : {std::size_t{90000}, std::size_t{91400}, std::size_t{91500}}) {
      const std::string why = cudnn_too_old(old, form);
      EXPECT_EQ(why.empty(), sequence % 128 == 0) << sequence;
      if (!why.empty()) {
        EXPECT_THAT(why, HasSubstr("before 9.15.1"));
      }
    }
  }
  AttentionForm keys_of_another_length{shape_of(2, 4, 64, 256), program::DType::bf16};
  keys_of_another_length.shape.key_length = 200;
  EXPECT_THAT(cudnn_too_old(91500, keys_of_another_length), HasSubstr("this is cuDNN 9.15.0"));
}

TEST(Cudnn, PackedDocumentsNeedAVersionThatKnowsThem) {
  const AttentionForm packed{shape_of(2, 4, 64, 256), program::DType::bf16, 3};
  EXPECT_THAT(cudnn_too_old(90501, packed), HasSubstr("install 9.6.0"));
  EXPECT_EQ(cudnn_too_old(90600, packed), "");
}

#ifdef HARNESS_HAS_DRIVER_STUB

class CudnnWithoutGpu : public ::testing::Test {
 protected:
  // Other versions may expect other keys in the device description.
  void SetUp() override {
    if (!cudnn_version().starts_with("9.19.")) GTEST_SKIP() << "the description is for cuDNN 9.19: " << cudnn_version();
  }
};

// A device description in cuDNN 9.19's own format, with the properties of an H200 or B200 that decide about kernels.
std::string device_of(int major) {
  return fmt::format(
      R"({{"deviceName":"GPU","deviceVer":{}00,"driverVer":13000,"cudaDeviceId":0,"pciDeviceId":0,"isTccDriver":0,)"
      R"("supportCoopLaunch":1,"multiProcessorCount":132,"warpSize":32,"maxSharedMemoryPerBlock":49152,)"
      R"("maxSharedMemoryPerBlockOptin":232448,"reservedSharedMemoryPerBlock":1024,"regsPerBlock":65536,)"
      R"("maxRegistersPerSM":65536,"maxCtasPerSM":32,"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,)"
      R"("totalGlobalMem":150000000000,"smClockRateKHz":1980000,"memClockRateKHz":3201000,"l2CacheSize":62914560,)"
      R"("maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64]}})",
      major);
}

program::AttentionShape shape_of(const config::Model& model, int tensor_parallel) {
  program::AttentionShape s = shape_of(1, model.heads / tensor_parallel, model.head_dim(), model.sequence);
  s.group = model.heads / model.key_heads();
  s.query_stride = s.key_stride = (s.heads + 2 * s.kv_heads()) * s.head_dim;
  return s;
}

// Returns "" if cuDNN proposes a kernel for both directions; otherwise the reason.
std::string why_not(const AttentionForm& fused, int major) {
  fake::reset({.compute_major = major});
  return test::error_of([&] {
    for (const bool backward : {false, true}) {
      if (count_fused_kernels(fused, backward, device_of(major)) < 1) fail("no kernel");
    }
  });
}

TEST_F(CudnnWithoutGpu, ProposesKernelsForEachModelOfThisRepositoryPackedOrNot) {
  std::vector<config::Model> models;
  for (const std::string& name : config::model_preset_names()) models.push_back(*config::model_preset(name));
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(test::source_dir()) / "configs")) {
    if (entry.path().extension() != ".yaml") continue;
    const config::Experiment e = config::load_experiment(entry.path().string());
    if (e.baseline.workload == config::training_workload) models.push_back(e.model.resolved());
  }
  std::set<program::AttentionShape> shapes;
  for (const config::Model& model : models) {
    for (const int tp : {1, 2, 4, 8}) {
      if (model.heads % tp == 0 && model.key_heads() % tp == 0) shapes.insert(shape_of(model, tp));
    }
  }
  EXPECT_GT(shapes.size(), 40U);
  for (const program::AttentionShape& shape : shapes) {
    for (const int major : {9, 10}) {
      for (const std::int64_t documents : {0, 29}) {
        EXPECT_EQ(why_not({shape, program::DType::bf16, documents}, major), "")
            << shape.heads << " heads of " << shape.head_dim << " in groups of " << shape.group << ", "
            << shape.query_length << " positions, " << documents << " documents, compute capability " << major;
      }
    }
  }
}

// Shows that the test above can fail.
TEST_F(CudnnWithoutGpu, SaysWhyItHasNoKernel) {
  EXPECT_THAT(why_not({shape_of(1, 4, 20, 128), program::DType::bf16}, 9), HasSubstr("multiple of 8"));
  EXPECT_THAT(why_not({shape_of(1, 4, 512, 128), program::DType::bf16}, 9), HasSubstr("256"));
  EXPECT_EQ(why_not({shape_of(1, 4, 64, 128), program::DType::bf16}, 8), "");
  EXPECT_THAT(why_not({shape_of(1, 4, 64, 128), program::DType::bf16, 3}, 8), HasSubstr("not supported"));
}

TEST_F(CudnnWithoutGpu, WideHeadsAreFusedWithoutABackwardPass) {
  const AttentionForm wide{shape_of(1, 4, 256, 128), program::DType::bf16};
  fake::reset({.compute_major = 8});
  EXPECT_EQ(fused_attention_unavailable(wide, false), "");
  EXPECT_THAT(fused_attention_unavailable(wide, true), HasSubstr("128"));
}

#endif

TEST(Cudnn, AttentionIsUnfusedBeforeAmpere) {
  fake::reset({.compute_major = 7});
  for (const std::int64_t documents : {0, 3}) {
    EXPECT_THAT(fused_attention_unavailable({shape_of(1, 4, 64, 128), program::DType::f16, documents}, false),
                HasSubstr("8 or later, not 7"));
  }
}

TEST(Cudnn, HeadsThatItDoesNotTakeOnThisGpuAreUnfused) {
  const auto why = [](int major, std::int64_t width) {
    fake::reset({.compute_major = major});
    return fused_attention_unavailable({shape_of(1, 4, width, 128), program::DType::bf16}, true);
  };
  EXPECT_THAT(why(9, 20), HasSubstr("multiple of 8"));
  EXPECT_EQ(why(9, 24), "");
  EXPECT_EQ(why(9, 256), "");
  EXPECT_THAT(why(9, 512), HasSubstr("256"));
  EXPECT_EQ(why(8, 128), "");
  EXPECT_THAT(why(8, 256), HasSubstr("128"));
}

TEST(Cudnn, PackedDocumentsAreFusedWhereTheBackwardPassCanBe) {
  const AttentionForm packed{shape_of(1, 4, 64, 128), program::DType::bf16, 3};
  AttentionForm whole = packed;
  whole.documents = 0;
  for (const int major : {8, 9, 10, 12}) {
    fake::reset({.compute_major = major});
    EXPECT_EQ(fused_attention_unavailable(packed, true).empty(), major == 9 || major == 10) << major;
    EXPECT_EQ(fused_attention_unavailable(whole, true), "") << major;
  }
}

}  // namespace
}  // namespace harness::cuda
