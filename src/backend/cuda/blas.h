#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/bound.h"
#include "backend/cuda/runtime.h"

struct cublasLtContext;

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
  bool tf32 = false;          // f32 inputs may be rounded to 10-bit mantissas
  bool block_scales = false;  // 8-bit factors have a scale for each block, not one for all
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

/// The product of an operation whose views lie at addresses aligned to `alignment_bytes`; `block_scales` is left to the
/// caller, who knows the scales' type.
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

/// Device addresses of a Product. `scratch`: n or m floats where the product says so (Blas::scratch_floats). a_scale
/// and b_scale: of 8-bit factors.
struct Operands {
  backend::Tensor a = {}, b = {}, bias = {}, add = {}, aux = {}, out = {}, bias_gradient = {};
  float* scratch = nullptr;
  backend::Tensor a_scale = {}, b_scale = {};
};

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
  Run prepare(const Product& product, const Operands& operands, const ProductChoice& choice);
  /// The choice where nothing was tuned: fused if the library has it.
  ProductChoice default_choice(const Product& product, const Operands& operands);
  /// The library's proposals, at most `at_most` of a form, best guess first. For a composite Product: those of the
  /// plain product with own kernels beside it, then those of the fused form.
  std::vector<ProductChoice> candidates(const Product& product, const Operands& operands, int at_most);
  /// Fused forms that the library refused with another word than "not supported": the separate form serves.
  const std::vector<std::string>& refusals() const { return refusals_; }

  /// Floats of scratch that a Product may need.
  static std::int64_t scratch_floats(const Product& product);
  static std::string version();

 private:
  struct Call;
  std::vector<std::string> proposals(const Product& product, const Operands& operands, int at_most);
  std::shared_ptr<Call> call(const Product& product, const Operands& operands, const std::string& algorithm);

  struct Close {
    void operator()(cublasLtContext* handle) const;
  };
  std::unique_ptr<cublasLtContext, Close> handle_;
  Memory workspace_;
  std::vector<std::string> refusals_;
};

}  // namespace harness::cuda
