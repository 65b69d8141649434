// cuBLASLt's descriptors, the matrix multiplication that they describe, and its arithmetic.
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <string>

namespace harness::fake {

struct LtDescriptor {
  static constexpr std::uint64_t live = 0x4c744d61744d756c;
  std::uint64_t magic = live;
  std::int32_t compute_type = 0;
  std::int32_t scale_type = 0;
  std::int32_t transpose_a = CUBLAS_OP_N;
  std::int32_t transpose_b = CUBLAS_OP_N;
  std::uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* bias = nullptr;
  void* aux = nullptr;
  std::int64_t aux_ld = 0;
  std::int32_t bias_type = -1;
  const void* a_scale = nullptr;  // of 8-bit matrices
  const void* b_scale = nullptr;
  std::int32_t a_scale_mode = 0;  // 0: one f32
  std::int32_t b_scale_mode = 0;
  std::int8_t fast_accumulation = 0;
};

struct LtLayout {
  static constexpr std::uint64_t live = 0x4c744c61796f7574;
  std::uint64_t magic = live;
  std::uint32_t type = CUDA_R_32F;
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
  std::uint32_t min_alignment[4] = {256, 256, 256, 256};  // of A, B, C, D
};

// Returns the content of a handle; null if it is invalid or was destroyed.
const LtDescriptor* content(cublasLtMatmulDesc_t descriptor);
const LtLayout* content(cublasLtMatrixLayout_t layout);
const LtPreference* content(cublasLtMatmulPreference_t preference);

bool is_live(cublasLtHandle_t handle);
cublasStatus_t lt_failed(cublasStatus_t status, const char* call, const char* why);

struct LtMatrix {
  cudaDataType_t type = CUDA_R_32F;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t row_step = 0;  // elements from one row to the next
  std::int64_t col_step = 0;
  std::int64_t batch_step = 0;

  std::int64_t index(std::int64_t row, std::int64_t col) const { return row * row_step + col * col_step; }
  std::size_t bytes(int batch_count) const;
  LtMatrix transposed() const;
};

struct LtProblem {
  std::int64_t m = 0, n = 0, k = 0;
  int batch_count = 1;
  LtMatrix a, b, c, d;  // a and b as op() makes them: m x k and k x n
  LtMatrix aux;
  LtDescriptor descriptor;
  std::uint64_t fingerprint = 0;  // equal for problems that the same algorithm accepts

  bool epilogue_has(unsigned bit) const { return (descriptor.epilogue & bit) != 0; }
  bool adds_bias() const { return epilogue_has(4); }
  bool applies_gelu() const { return epilogue_has(32); }
  bool applies_gelu_gradient() const { return epilogue_has(64); }
  bool uses_aux() const { return epilogue_has(128); }
  bool sums_b() const { return descriptor.epilogue == CUBLASLT_EPILOGUE_BGRADB; }  // the bias gradient, n elements
  bool uses_bias() const { return adds_bias() || sums_b(); }
  bool has_block_scales() const { return descriptor.a_scale_mode != 0; }
  // Bytes of the scales of A with `outer` rows, or of B with `outer` columns: a byte for 32 elements, in tiles of
  // 128 x 4.
  std::size_t scale_bytes(std::int64_t outer) const {
    if (!has_block_scales()) return sizeof(float);
    return static_cast<std::size_t>((outer + 127) / 128 * ((k + 127) / 128) * 512);
  }
};

std::size_t size_of(cudaDataType_t type);
inline bool is_8_bit(cudaDataType_t type) {
  return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2;
}

// Fills `problem` and returns CUBLAS_STATUS_SUCCESS, or fills `why` and returns the library's status for the problem.
cublasStatus_t resolve(cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, LtProblem& problem, std::string& why);

// The content of an opaque cublasLtMatmulAlgo_t.
struct LtAlgorithm {
  static constexpr std::uint64_t live = 0x4c74416c676f2121;
  std::uint64_t magic = live;
  std::uint64_t fingerprint = 0;  // of the problem for which it was offered
  std::uint64_t workspace_bytes = 0;
  std::uint32_t number = 2;                       // as cublasLtMatmulAlgoGetHeuristic counts; by default the plain one
  std::uint16_t alignment[4] = {16, 16, 16, 16};  // of A, B, C, D, promised in the preference
  std::uint16_t bias_alignment = 1;               // of the pointer in the descriptor, when the heuristic was called
  std::uint16_t aux_alignment = 1;
  bool in_place = false;  // C must be D
};

struct MatmulJob {
  LtProblem problem;
  const void* a = nullptr;
  const void* b = nullptr;
  const void* c = nullptr;  // not read if beta is 0
  void* d = nullptr;
  float alpha = 1, beta = 0;
  int algorithm = 0;
  double* workspace = nullptr;  // holds the m x n sums, if given
};

// Computes the product and its epilogue in plain loops.
void multiply(const MatmulJob& job);

}  // namespace harness::fake
