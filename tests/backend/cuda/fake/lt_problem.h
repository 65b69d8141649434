// One matrix multiplication as cuBLASLt's descriptors describe it, checked against what the library documents.
#pragma once

#include <cstdint>
#include <string>

#include "lt_descriptor.h"

namespace harness::fake {

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
  std::uint64_t fingerprint = 0;  // the same for problems that one algorithm does

  bool epilogue_has(unsigned bit) const { return (descriptor.epilogue & bit) != 0; }
  bool adds_bias() const { return epilogue_has(4); }
  bool applies_gelu() const { return epilogue_has(32); }
  bool applies_gelu_gradient() const { return epilogue_has(64); }
  bool uses_aux() const { return epilogue_has(128); }
  // The bias gradient's length; 0: none is computed.
  std::int64_t bias_gradient() const;
  bool uses_bias() const { return adds_bias() || bias_gradient() > 0; }
};

std::size_t size_of(cudaDataType_t type);

// CUBLAS_STATUS_SUCCESS, or what the library answers to such descriptors, with the reason.
cublasStatus_t resolve(cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, LtProblem& problem, std::string& why);

// What an opaque algorithm of these stand-ins holds.
struct LtAlgorithm {
  static constexpr std::uint64_t live = 0x4c74416c676f2121;
  std::uint64_t magic = live;
  std::uint64_t fingerprint = 0;  // of the problem that it was offered for
  std::uint64_t workspace_bytes = 0;
  std::uint32_t number = 2;  // as cublasLtMatmulAlgoGetHeuristic counts them; without one asked for, the plain one
  std::uint16_t alignment[4] = {16, 16, 16, 16};  // of A, B, C, D, promised in the preference
  std::uint16_t bias_alignment = 1;               // seen when it was asked for
  std::uint16_t aux_alignment = 1;
  bool in_place = false;  // its C has to be its D
};

}  // namespace harness::fake
