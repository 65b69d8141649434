#pragma once

#include <cstdint>

#include "program/program.h"

namespace harness::program {

/// Fused forms a backend may run as they stand; what is not declared is replaced by finer operations.
enum class Fused : std::uint32_t {
  matmul_bias = 1,           // bias in a Matmul            else Matmul, BiasAdd
  matmul_gelu = 2,           // Epilogue::gelu              else Matmul into aux, Gelu
  matmul_gelu_backward = 4,  // Epilogue::gelu_backward     else Matmul, GeluBackward
  matmul_bias_gradient = 8,  // bias_gradient in a Matmul   else ColumnSum, Matmul; also of a Quantise
  cross_entropy = 16,        // CrossEntropy                else its three parts
  matmul_add = 32,           // add in a Matmul             else Matmul, ResidualAdd (which takes the bias along)
  norm_residual = 64,        // residual in a norm          else ResidualAdd into sum, the norm
  norm_dresidual = 128,      // dresidual in its backward   else its backward, ResidualAdd, ColumnSum for dbias
  norm_bias_gradient = 256,  // dbias in its backward       else its backward, ColumnSum
};
using FusedSet = std::uint32_t;
inline constexpr FusedSet operator|(Fused a, Fused b) {
  return static_cast<FusedSet>(a) | static_cast<FusedSet>(b);
}
inline constexpr FusedSet operator|(FusedSet a, Fused b) {
  return a | static_cast<FusedSet>(b);
}
inline constexpr bool has(FusedSet set, Fused f) {
  return (set & static_cast<FusedSet>(f)) != 0;
}
inline constexpr FusedSet all_fused = 511;

/// Rewrites a Program in the finer operations that a backend with `declared` fused forms understands. FLOPs,
/// communication and verification are unchanged.
Program lower(Program program, FusedSet declared);
ProgramSet lower(ProgramSet set, FusedSet declared);

}  // namespace harness::program
