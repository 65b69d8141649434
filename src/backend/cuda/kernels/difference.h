#pragma once

#include "backend/tensor.h"

struct CUstream_st;

namespace harness::cuda {

/// Pairs of floats that difference() writes at most.
inline constexpr int max_difference_parts = 256;

/// How far `a` is from `b`, both f32 or bf16 and of one size: parts[2 i] = a share of the sum of (a - b)^2, parts[2 i +
/// 1] = the same share of that of b^2, for i below what it returns. A NaN in either stays one in the sums.
int difference(CUstream_st* stream, const backend::Tensor& a, const backend::Tensor& b, float* parts);

}  // namespace harness::cuda
