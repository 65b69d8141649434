#include <cublasLt.h>
#include <cuda_bf16.h>

#include <cmath>
#include <random>
#include <type_traits>

#include "device.h"

namespace harness::fake {
namespace {

template <typename T>
constexpr cudaDataType_t type_of = std::is_same_v<T, float> ? CUDA_R_32F : CUDA_R_16BF;

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

// One multiplication and all that it needs. The expected result is computed element by element from the definition.
struct Gemm {
  int m = 24, n = 16, k = 40;
  bool transpose_a = false, transpose_b = false;
  int batch = 1;
  float alpha = 1, beta = 0;
  unsigned epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  std::size_t workspace_bytes = 1 << 20;
  std::size_t workspace_limit = 1 << 20;
  int pick = 0;  // of the algorithms that can run
};

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

  template <typename T>
  std::vector<T> random(std::size_t count) {
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<T> values(count);
    for (T& value : values) value = static_cast<T>(uniform(engine));
    return values;
  }

  void set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    ASSERT_EQ(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value), CUBLAS_STATUS_SUCCESS);
  }

  // Every matrix has a leading dimension of its own, larger than its rows. Returns the status of the heuristic, or of
  // the call; compares the result if that is success.
  template <typename In, typename Out>
  cublasStatus_t run(const Gemm& gemm, double tolerance) {
    const int a_rows = gemm.transpose_a ? gemm.k : gemm.m, a_cols = gemm.transpose_a ? gemm.m : gemm.k;
    const int b_rows = gemm.transpose_b ? gemm.n : gemm.k, b_cols = gemm.transpose_b ? gemm.k : gemm.n;
    const int lda = a_rows + 8, ldb = b_rows + 16, ldc = gemm.m + 8, ldd = gemm.m + 24, ldx = gemm.m + 8;
    const auto a = random<In>(lda * a_cols * gemm.batch);
    const auto b = random<In>(ldb * b_cols * gemm.batch);
    const auto c = random<Out>(ldc * gemm.n * gemm.batch);
    const auto bias = random<Out>(gemm.m);
    const auto aux = random<Out>(ldx * gemm.n);
    Buffer<In> device_a(a), device_b(b);
    Buffer<Out> device_c(c), device_d(ldd * gemm.n * gemm.batch), device_bias(std::max(gemm.m, gemm.n)),
        device_aux(aux);
    EXPECT_EQ(cudaMemcpy(device_bias.data, bias.data(), gemm.m * sizeof(Out), cudaMemcpyHostToDevice), cudaSuccess);
    Buffer<char> workspace(gemm.workspace_bytes);

    cublasLtMatmulDesc_t operation = nullptr;
    EXPECT_EQ(cublasLtMatmulDescCreate(&operation, gemm.compute, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
    const std::int32_t no = CUBLAS_OP_N, yes = CUBLAS_OP_T;
    set(operation, CUBLASLT_MATMUL_DESC_TRANSA, gemm.transpose_a ? yes : no);
    set(operation, CUBLASLT_MATMUL_DESC_TRANSB, gemm.transpose_b ? yes : no);
    set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, gemm.epilogue);
    if (gemm.epilogue != CUBLASLT_EPILOGUE_DEFAULT) {
      set(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, device_bias.data);
      set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, device_aux.data);
      set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, std::int64_t{ldx});
    }
    cublasLtMatrixLayout_t layouts[4];
    const int rows[] = {a_rows, b_rows, gemm.m, gemm.m}, cols[] = {a_cols, b_cols, gemm.n, gemm.n};
    const int lds[] = {lda, ldb, ldc, ldd};
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(cublasLtMatrixLayoutCreate(&layouts[i], i < 2 ? type_of<In> : type_of<Out>, rows[i], cols[i], lds[i]),
                CUBLAS_STATUS_SUCCESS);
      const std::int64_t stride = std::int64_t{lds[i]} * cols[i];
      cublasLtMatrixLayoutSetAttribute(layouts[i], CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &gemm.batch, 4);
      cublasLtMatrixLayoutSetAttribute(layouts[i], CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, 8);
    }
    cublasLtMatmulPreference_t preference = nullptr;
    EXPECT_EQ(cublasLtMatmulPreferenceCreate(&preference), CUBLAS_STATUS_SUCCESS);
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &gemm.workspace_limit,
                                         8);
    cublasLtMatmulHeuristicResult_t results[8];
    int count = 0;
    cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle, operation, layouts[0], layouts[1], layouts[2],
                                                           layouts[3], preference, 8, results, &count);
    if (status == CUBLAS_STATUS_SUCCESS) {
      offered = 0;
      const cublasLtMatmulHeuristicResult_t* chosen = nullptr;
      for (int i = 0; i < count; ++i) {
        if (results[i].state != CUBLAS_STATUS_SUCCESS) continue;
        if (offered++ == gemm.pick) chosen = &results[i];
      }
      TestStream stream;
      float alpha = gemm.alpha, beta = gemm.beta;
      status = cublasLtMatmul(handle, operation, &alpha, device_a.data, layouts[0], device_b.data, layouts[1], &beta,
                              device_c.data, layouts[2], device_d.data, layouts[3], &chosen->algo, workspace.data,
                              gemm.workspace_bytes, stream);
      alpha = beta = NAN;  // read at the call
      EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    }
    EXPECT_EQ(cublasLtMatmulPreferenceDestroy(preference), CUBLAS_STATUS_SUCCESS);
    for (const auto layout : layouts) EXPECT_EQ(cublasLtMatrixLayoutDestroy(layout), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatmulDescDestroy(operation), CUBLAS_STATUS_SUCCESS);
    if (status != CUBLAS_STATUS_SUCCESS) return status;

    const auto d = device_d.read();
    const auto new_aux = device_aux.read();
    std::vector<double> row_sums(gemm.m), a_sums(gemm.m), b_sums(gemm.n);
    for (int batch = 0; batch < gemm.batch; ++batch) {
      for (int i = 0; i < gemm.m; ++i) {
        for (int j = 0; j < gemm.n; ++j) {
          double sum = 0;
          for (int l = 0; l < gemm.k; ++l) {
            const double x = a[batch * lda * a_cols + (gemm.transpose_a ? l + i * lda : i + l * lda)];
            const double y = b[batch * ldb * b_cols + (gemm.transpose_b ? j + l * ldb : l + j * ldb)];
            sum += x * y;
            if (j == 0) a_sums[i] += x;
            if (i == 0) b_sums[j] += y;
          }
          double value = gemm.alpha * sum;
          if (gemm.beta != 0) value += gemm.beta * double{c[batch * ldc * gemm.n + i + j * ldc]};
          if (gemm.epilogue & CUBLASLT_EPILOGUE_BIAS) value += double{bias[i]};
          if (gemm.epilogue & CUBLASLT_EPILOGUE_GELU) {
            if (gemm.epilogue & 128) {
              EXPECT_NEAR(double{new_aux[i + j * ldx]}, value, tolerance);
            }
            value = gelu(value);
          }
          if (gemm.epilogue == CUBLASLT_EPILOGUE_DGELU || gemm.epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD) {
            const double x = aux[i + j * ldx], h = 1e-5;
            value *= (gelu(x + h) - gelu(x - h)) / (2 * h);
          }
          row_sums[i] += value;
          EXPECT_NEAR(double{d[batch * ldd * gemm.n + i + j * ldd]}, value, tolerance) << i << ' ' << j;
        }
      }
    }
    const auto gradient = device_bias.read();
    const auto compare = [&](const std::vector<double>& sums) {
      for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_NEAR(double{gradient[i]}, sums[i], 8 * tolerance);
    };
    if (gemm.epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD) compare(row_sums);
    if (gemm.epilogue == CUBLASLT_EPILOGUE_BGRADA) compare(a_sums);
    if (gemm.epilogue == CUBLASLT_EPILOGUE_BGRADB) compare(b_sums);
    EXPECT_TRUE(std::isnan(double{d[gemm.m]}));  // between the columns nothing is written
    return status;
  }

  cublasLtHandle_t handle = nullptr;
  std::mt19937 engine{7};
  int offered = 0;  // algorithms that can run
};

using Brain = __nv_bfloat16;

TEST_F(Matmul, TransposesAndScalesOfEveryType) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      Gemm gemm{.transpose_a = transpose_a, .transpose_b = transpose_b, .alpha = 0.5f, .beta = 1.5f};
      EXPECT_EQ((run<float, float>(gemm, 1e-5)), CUBLAS_STATUS_SUCCESS);
      EXPECT_EQ((run<Brain, float>(gemm, 1e-5)), CUBLAS_STATUS_SUCCESS);
      EXPECT_EQ((run<Brain, Brain>(gemm, 0.04)), CUBLAS_STATUS_SUCCESS);
      gemm.beta = 0;
      gemm.batch = 3;
      EXPECT_EQ((run<float, float>(gemm, 1e-5)), CUBLAS_STATUS_SUCCESS);
    }
  }
  EXPECT_EQ((run<float, float>({.compute = CUBLAS_COMPUTE_32F_FAST_TF32}, 1e-5)), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(complaints(), std::vector<std::string>{});
}

TEST_F(Matmul, Epilogues) {
  for (const unsigned epilogue : {CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_GELU_BIAS,
                                  CUBLASLT_EPILOGUE_GELU_AUX, CUBLASLT_EPILOGUE_GELU_AUX_BIAS, CUBLASLT_EPILOGUE_DGELU,
                                  CUBLASLT_EPILOGUE_DGELU_BGRAD, CUBLASLT_EPILOGUE_BGRADA, CUBLASLT_EPILOGUE_BGRADB}) {
    SCOPED_TRACE(epilogue);
    const Gemm gemm{.transpose_a = true, .epilogue = epilogue};
    EXPECT_EQ((run<float, float>(gemm, 1e-5)), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ((run<Brain, Brain>(gemm, 0.04)), CUBLAS_STATUS_SUCCESS);
  }
  EXPECT_EQ(complaints(), std::vector<std::string>{});
}

TEST_F(Matmul, EveryOfferedAlgorithmIsRight) {
  for (int pick = 0; pick < 3; ++pick) EXPECT_EQ((run<float, float>({.pick = pick}, 1e-5)), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(offered, 3);
  EXPECT_EQ((run<float, float>({.workspace_limit = 0}, 1e-5)), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(offered, 2);
  EXPECT_EQ((run<float, float>({.workspace_bytes = 64}, 1e-5)), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_TRUE(complained("a workspace of 64 bytes"));
}

TEST_F(Matmul, WhatTheTableForbidsIsRefused) {
  EXPECT_EQ((run<float, Brain>({}, 0.04)), CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ((run<Brain, Brain>({.compute = CUBLAS_COMPUTE_32F_FAST_TF32}, 0.04)), CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ((run<float, float>({.epilogue = CUBLASLT_EPILOGUE_RELU}, 1)), CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ((run<float, float>({.m = 20, .epilogue = CUBLASLT_EPILOGUE_DGELU}, 1)), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_TRUE(complained("auxiliary matrix: a multiple of 8"));
}

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
