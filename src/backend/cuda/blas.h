#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/bound.h"
#include "backend/cuda/kernels/kernels.h"
#include "backend/cuda/runtime.h"

struct cublasLtContext;

namespace harness::cuda {

/// A Matmul (program/compute.h) with its addresses, batched `batch` times, as it is passed to cuBLASLt.
struct Product {
  /// A single product (batch 1) of dense matrices.
  Product(const backend::Bound<program::Matmul>& op, bool tf32);

  /// Element (i, j) of batch b of a row-major matrix, as stored, is at b * batch + i * row + j.
  struct Strides {
    std::int64_t row = 0, batch = 0;
  };
  backend::Bound<program::Matmul> op;
  std::int64_t batch = 1;
  Strides a, b, out;          // `add` and `aux` have the strides of `out`
  bool tf32;                  // f32 inputs may be rounded to 10-bit mantissas
  int alignment_bytes = 256;  // of all addresses, at most 256
  float* scratch = nullptr;   // scratch_floats(op) floats

  /// True if the 8-bit factors have a scale per block instead of one per tensor.
  bool block_scales() const { return program::are_of_blocks(op.a_scale.type); }
  /// True if the operation is more than a product with bias and `add`. It then has two forms: the library's fused
  /// epilogue, or a plain product plus own kernels.
  bool composite() const { return op.epilogue != program::Epilogue::none || op.bias_gradient.present(); }
  /// Returns the plain product that own kernels complete in the separate form.
  Product plain() const;
  double flop() const {
    return 2.0 * static_cast<double>(batch) * static_cast<double>(op.m) * static_cast<double>(op.n) *
           static_cast<double>(op.k);
  }
};

/// Returns the largest power of two up to 256 that divides a size in bytes, or an address.
int alignment_of(std::uintptr_t bytes);

/// Returns the name of a Product in a table of tuned choices. Products with equal keys differ only in their addresses.
std::string key_of(const Product& product);

/// How a Product is computed. `algorithm`: the library's opaque bytes, "" for its first proposal. `seconds`: the time
/// measured when it was chosen, 0 if it was not timed. `rejected`: proposals that ran, but whose results differed from
/// the reference (tune_products()).
struct ProductChoice {
  bool fused = true;
  std::string algorithm;
  double seconds = 0;
  int rejected = 0;
  bool operator==(const ProductChoice&) const = default;
};
/// Text form for a file: "fused 0a1b… 0.000125" or "separate 0a1b… 0", followed by " 2" after two rejections.
/// parse_choice throws Error for anything that print_choice did not make.
std::string print_choice(const ProductChoice& choice);
ProductChoice parse_choice(std::string_view text);

/// Scratch of a Matmul; kernels.h has that of the other operations.
template <class T>
std::int64_t scratch_floats(const program::MatmulOf<T>& op) {
  if (!op.bias_gradient.present()) return 0;
  return std::max(op.m, scratch_floats(program::ColumnSum{.rows = op.k, .width = op.m}));
}

/// Matrix products by cuBLASLt; the only class that uses the library. All products share one workspace, so they belong
/// on one stream. prepare() fixes descriptors and algorithms: running a product looks nothing up and may be captured.
class Blas {
 public:
  static constexpr std::int64_t workspace_bytes = std::int64_t{32} << 20;  // NVIDIA's recommendation for Hopper

  Blas();

  using Run = std::function<void(Stream)>;
  /// Prepares a product. The choice says whether a composite Product runs in the library's fused form or as a plain
  /// product plus own kernels; an `algorithm` of "" takes the library's first proposal. Throws Error if it has none.
  Run prepare(const Product& product, const ProductChoice& choice);
  /// Returns the choice for an untuned Product: fused if the library has that form.
  ProductChoice default_choice(const Product& product);
  /// Returns the library's proposals, at most `at_most` per form, best guess first. For a composite Product, those of
  /// the separate form (plain product plus own kernels) precede those of the fused form.
  std::vector<ProductChoice> candidates(const Product& product, int at_most);
  /// Fused forms that the library refused with a status other than "not supported"; they run in the separate form.
  const std::vector<std::string>& refusals() const { return refusals_; }

  static std::string version();

 private:
  struct Call;
  std::vector<std::string> proposals(const Product& product, int at_most);
  std::shared_ptr<Call> call(const Product& product, const std::string& algorithm);

  struct Close {
    void operator()(cublasLtContext* handle) const;
  };
  std::unique_ptr<cublasLtContext, Close> handle_;
  Memory workspace_;
  std::vector<std::string> refusals_;
};

}  // namespace harness::cuda
