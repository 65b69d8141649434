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

/// A Matmul with its addresses (program/compute.h), `batch` times, as the library is asked for it.
struct Product {
  /// One product of dense matrices.
  Product(const backend::Bound<program::Matmul>& op, bool tf32);

  /// Element (i, j) of batch b of a row-major matrix, as it is stored, lies at b * batch + i * row + j.
  struct Strides {
    std::int64_t row = 0, batch = 0;
  };
  backend::Bound<program::Matmul> op;
  std::int64_t batch = 1;
  Strides a, b, out;          // `add` and `aux` are stored as `out` is
  bool tf32;                  // f32 inputs may be rounded to 10-bit mantissas
  int alignment_bytes = 256;  // of all addresses, at most 256
  float* scratch = nullptr;   // as many floats as scratch_floats() of the operation says

  /// 8-bit factors have a scale for each block, not one for all.
  bool block_scales() const { return program::are_of_blocks(op.a_scale.type); }
  /// More than a product with bias and `add`: the library's fused form and own kernels beside a plain product both
  /// compute it.
  bool composite() const { return op.epilogue != program::Epilogue::none || op.bias_gradient.present(); }
  /// The plain product that own kernels make whole.
  Product plain() const;
  double flop() const {
    return 2.0 * static_cast<double>(batch) * static_cast<double>(op.m) * static_cast<double>(op.n) *
           static_cast<double>(op.k);
  }
};

/// The largest power of two up to 256 that divides a number of bytes, or an address.
int alignment_of(std::uintptr_t bytes);

/// Names a Product in a table of tuned choices: equal keys, Products that differ by their addresses alone.
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

/// Scratch of a Matmul, beside that of the other operations in kernels.h.
template <class T>
std::int64_t scratch_floats(const program::MatmulOf<T>& op) {
  if (!op.bias_gradient.present()) return 0;
  return std::max(op.m, scratch_floats(program::ColumnSum{.rows = op.k, .width = op.m}));
}

/// Matrix products by cuBLASLt: the only class that knows the library. One workspace, so its products belong on one
/// stream. Descriptors and algorithms are fixed when a product is prepared; running it looks nothing up and may be
/// captured.
class Blas {
 public:
  static constexpr std::int64_t workspace_bytes = std::int64_t{32} << 20;  // NVIDIA's recommendation for Hopper

  Blas();

  using Run = std::function<void(Stream)>;
  /// A composite Product is computed in the library's fused form or by own kernels beside a plain product, as the
  /// choice says; "" of an algorithm takes the library's first proposal. Throws Error if it has none.
  Run prepare(const Product& product, const ProductChoice& choice);
  /// The choice where nothing was tuned: fused if the library has it.
  ProductChoice default_choice(const Product& product);
  /// The library's proposals, at most `at_most` of a form, best guess first. For a composite Product: those of the
  /// plain product with own kernels beside it, then those of the fused form.
  std::vector<ProductChoice> candidates(const Product& product, int at_most);
  /// Fused forms that the library refused with another word than "not supported": the separate form serves.
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
