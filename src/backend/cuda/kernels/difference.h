#pragma once

#include "backend/tensor.h"

struct CUstream_st;

namespace harness::cuda {

/// Pairs of floats that difference() writes at most.
inline constexpr int max_difference_parts = 256;

/// How far `a` is from `b`, both f32 or bf16 and of one size, cut into parts of neighbours of one size: parts[2 i] =
/// the sum of (a - b)^2 over part i, parts[2 i + 1] = that of b^2, for i below what it returns. A NaN in either stays
/// one in the sums.
int difference(CUstream_st* stream, const backend::Tensor& a, const backend::Tensor& b, float* parts);

}  // namespace harness::cuda
