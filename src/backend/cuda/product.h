#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "backend/bound.h"

namespace harness::cuda {

/// A row-major matrix of a product as it is stored: element (i, j) of batch b at b * batch_stride + i * leading + j.
struct Matrix {
  program::DType type = program::DType::bf16;
  bool transposed = false;  // before it is multiplied
  std::int64_t leading = 0, batch_stride = 0;
};

/// out[m, n] = op(a)[m, k] op(b)[k, n] + bias[n] + add[m, n], then the epilogue; as Matmul in program/compute.h,
/// `batch` times. Everything but the addresses. `add` is stored as `out` is.
struct Product {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  Matrix a, b, out;
  bool bias = false, add = false, bias_gradient = false, accumulate = false;
  bool tf32 = false;  // f32 inputs may be rounded to 10-bit mantissas
  program::Epilogue epilogue = program::Epilogue::none;
  int alignment_bytes = 256;  // of all addresses, at most 256

  /// More than a product with bias and `add`: the library's fused form and own kernels beside a plain product both
  /// compute it.
  bool composite() const { return epilogue != program::Epilogue::none || bias_gradient; }
  /// The plain product that own kernels make whole.
  Product plain() const;
  double flop() const {
    return 2.0 * static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
};

/// The largest power of two up to 256 that divides an address or a number of bytes.
int alignment_of(std::int64_t bytes);
int alignment_of(const void* address);

/// The product of an operation whose views lie at addresses aligned to `alignment_bytes`. Throws Error for an operation
/// that cannot be.
Product product_of(const program::Matmul& op, program::DType a, program::DType b, program::DType out, bool tf32,
                   int alignment_bytes);
Product product_of(const backend::Bound<program::Matmul>& op, bool tf32);

/// Names a Product in a table of tuned choices: equal keys, equal Products.
std::string key_of(const Product& product);

/// How a Product is computed. `algorithm`: the library's own opaque bytes, "" for its first proposal. `seconds`: what
/// it took when it was chosen, 0 if it was not timed. `rejected`: proposals that were as fast, but whose results
/// differed from the plain product's.
struct ProductChoice {
  bool fused = true;
  std::string algorithm;
  double seconds = 0;
  int rejected = 0;
  bool operator==(const ProductChoice&) const = default;
};
/// "fused 0a1b… 1.25e-04" / "separate 0a1b… 0", with " 2" behind it after two rejections, for a file. parse_choice
/// throws Error for anything print_choice did not make.
std::string print_choice(const ProductChoice& choice);
ProductChoice parse_choice(std::string_view text);

}  // namespace harness::cuda
