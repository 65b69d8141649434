#include <cublasLt.h>

#include "device.h"

namespace harness::fake {
namespace {

class Matmul : public Device {
 protected:
  void SetUp() override {
    Device::SetUp();
    ASSERT_EQ(cublasLtCreate(&handle), CUBLAS_STATUS_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(cublasLtDestroy(handle), CUBLAS_STATUS_SUCCESS);
    Device::TearDown();
  }

  cublasLtHandle_t handle = nullptr;
};

// Two streams with a workspace of their own each are right; with one for both they are soon wrong.
TEST_F(Matmul, ASharedWorkspaceShows) {
  constexpr int n = 64;
  const std::vector<float> ones(n * n, 1), twos(n * n, 2);
  Buffer<float> a(ones), b(twos), d(n * n), e(n * n);
  Buffer<char> workspaces(2 * n * n * sizeof(double));
  TestStream first, second;
  cublasLtMatmulDescOpaque_t operation;
  cublasLtMatrixLayoutOpaque_t layout;
  cublasLtMatmulPreferenceOpaque_t preference;
  ASSERT_EQ(cublasLtMatmulDescInit(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasLtMatrixLayoutInit(&layout, CUDA_R_32F, n, n, n), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasLtMatmulPreferenceInit(&preference), CUBLAS_STATUS_SUCCESS);
  const std::size_t limit = n * n * sizeof(double);
  cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &limit, 8);
  cublasLtMatmulHeuristicResult_t result;
  int count = 0;
  ASSERT_EQ(cublasLtMatmulAlgoGetHeuristic(handle, &operation, &layout, &layout, &layout, &layout, &preference, 1,
                                           &result, &count),
            CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(result.workspaceSize, limit);
  const float unit = 1, zero = 0;
  const auto multiply = [&](const float* left, float* into, char* workspace, cudaStream_t stream) {
    EXPECT_EQ(cublasLtMatmul(handle, &operation, &unit, left, &layout, a.data, &layout, &zero, into, &layout, into,
                             &layout, &result.algo, workspace, limit, stream),
              CUBLAS_STATUS_SUCCESS);
  };
  const auto wrong_of = [&](char* other_workspace, int rounds) {
    for (int i = 0; i < rounds; ++i) {
      multiply(a.data, d.data, workspaces.data, first);
      multiply(b.data, e.data, other_workspace, second);
      EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      if (d.read() != std::vector<float>(n * n, n) || e.read() != std::vector<float>(n * n, 2 * n)) return true;
    }
    return false;
  };
  EXPECT_FALSE(wrong_of(workspaces.data + limit, 30));
  EXPECT_TRUE(wrong_of(workspaces.data, 1000));
}

// A plain f32 product n x n with one argument wrong at a time.
TEST_F(Matmul, WrongArgumentsAreRefused) {
  Buffer<float> a(64 * 64), b(64 * 64), d(64 * 64);
  TestStream stream;
  cublasLtMatmulDesc_t operation = nullptr;
  ASSERT_EQ(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
  cublasLtMatrixLayoutOpaque_t layout, narrow, other;
  ASSERT_EQ(cublasLtMatrixLayoutInit(&layout, CUDA_R_32F, 64, 64, 64), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasLtMatrixLayoutInit(&narrow, CUDA_R_32F, 64, 64, 63), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasLtMatrixLayoutInit(&other, CUDA_R_32F, 64, 32, 64), CUBLAS_STATUS_SUCCESS);
  const float unit = 1, zero = 0;
  const auto call_with_c = [&](cublasLtMatrixLayout_t a_layout, const float* a_data, const float* beta,
                               const float* c_data, float* d_data) {
    return cublasLtMatmul(handle, operation, &unit, a_data, a_layout, b.data, &layout, beta, c_data, &layout, d_data,
                          &layout, nullptr, nullptr, 0, stream);
  };
  const auto call = [&](cublasLtMatrixLayout_t a_layout, const float* a_data, float* d_data) {
    return call_with_c(a_layout, a_data, &zero, d_data, d_data);
  };
  EXPECT_EQ(call(&layout, a.data, d.data), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(complaints(), std::vector<std::string>{});
  EXPECT_EQ(call(&narrow, a.data, d.data), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_TRUE(complained("leading dimension 63, which must be at least 64"));
  EXPECT_EQ(call(&other, a.data, d.data), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_TRUE(complained("op(B) is 64 x 64, expected 32 x 64"));
  EXPECT_EQ(call(&layout, a.data + 4, d.data), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_TRUE(complained("A: 16384 bytes"));
  EXPECT_EQ(call(&layout, a.data, a.data), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_TRUE(complained("D overlaps A"));
  Buffer<float> twice(2 * 64 * 64);
  EXPECT_EQ(call_with_c(&layout, a.data, &unit, twice.data + 64 * 64, twice.data), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(call_with_c(&layout, a.data, &unit, twice.data, twice.data), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(call_with_c(&layout, a.data, &zero, twice.data + 64, twice.data), CUBLAS_STATUS_SUCCESS);  // C is not read
  EXPECT_EQ(call_with_c(&layout, a.data, &unit, twice.data + 64, twice.data), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_TRUE(complained("D overlaps C"));
  EXPECT_EQ(call_with_c(&layout, a.data, &unit, nullptr, twice.data), CUBLAS_STATUS_INVALID_VALUE);
  cublasLtMatrixLayoutOpaque_t half;
  ASSERT_EQ(cublasLtMatrixLayoutInit(&half, CUDA_R_16BF, 64, 64, 64), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(call(&half, a.data, d.data), CUBLAS_STATUS_NOT_SUPPORTED);  // beside f32
  for (const std::uint32_t epilogue : {CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_DEFAULT}) {
    ASSERT_EQ(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue),
              CUBLAS_STATUS_SUCCESS);
    const bool known = epilogue == CUBLASLT_EPILOGUE_DEFAULT;
    EXPECT_EQ(call(&layout, a.data, d.data), known ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED);
  }
  std::vector<float> host(64 * 64);
  EXPECT_EQ(call(&layout, host.data(), d.data), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_TRUE(complained("are not device memory"));
  ASSERT_EQ(cublasLtMatrixLayoutInit(&layout, CUDA_R_32F, 32, 32, 32), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(call(&layout, a.data + 1, d.data), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_TRUE(complained("not aligned to 16 bytes"));
  EXPECT_EQ(cublasLtMatmulDescDestroy(operation), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(call(&layout, a.data, d.data), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
}

}  // namespace
}  // namespace harness::fake
