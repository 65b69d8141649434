// cuBLASLt's descriptors: what the caller's opaque structures hold here.
#pragma once

#include <cublasLt.h>

#include <cstdint>

namespace harness::fake {

struct LtDescriptor {
  static constexpr std::uint64_t live = 0x4c744d61744d756c;
  std::uint64_t magic = live;
  std::int32_t compute_type = 0;
  std::int32_t scale_type = 0;
  std::int32_t pointer_mode = CUBLASLT_POINTER_MODE_HOST;
  std::int32_t transpose_a = CUBLAS_OP_N;
  std::int32_t transpose_b = CUBLAS_OP_N;
  std::int32_t transpose_c = CUBLAS_OP_N;
  std::int32_t fill_mode = CUBLAS_FILL_MODE_FULL;
  std::uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* bias = nullptr;
  std::int64_t bias_stride = 0;
  void* aux = nullptr;
  std::int64_t aux_ld = 0;
  std::int64_t aux_stride = 0;
  std::int32_t aux_type = -1;
  std::int32_t bias_type = -1;
  std::int8_t fast_accumulation = 0;
};

struct LtLayout {
  static constexpr std::uint64_t live = 0x4c744c61796f7574;
  std::uint64_t magic = live;
  std::uint32_t type = CUDA_R_32F;
  std::int32_t order = CUBLASLT_ORDER_COL;
  std::uint64_t rows = 0;
  std::uint64_t cols = 0;
  std::int64_t ld = 0;
  std::int64_t batch_stride = 0;
  std::int32_t batch_count = 1;
};

struct LtPreference {
  static constexpr std::uint64_t live = 0x4c74507265666572;
  std::uint64_t magic = live;
  std::uint64_t max_workspace_bytes = 0;
  std::uint32_t search_mode = CUBLASLT_SEARCH_BEST_FIT;
  std::uint32_t reduction_schemes = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::uint32_t min_alignment[4] = {256, 256, 256, 256};  // of A, B, C, D
  float max_waves = 0;
};

// What a structure holds; null if it is none, or was destroyed.
const LtDescriptor* content(cublasLtMatmulDesc_t descriptor);
const LtLayout* content(cublasLtMatrixLayout_t layout);
const LtPreference* content(cublasLtMatmulPreference_t preference);

bool is_live(cublasLtHandle_t handle);
cublasStatus_t lt_failed(cublasStatus_t status, const char* call, const char* why);

}  // namespace harness::fake
