#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/product.h"
#include "backend/cuda/runtime.h"
#include "backend/tensor.h"

namespace harness::cuda {

/// Device addresses of a Product. `scratch`: n or m floats where the product says so (Blas::scratch_floats).
struct Operands {
  backend::Tensor a = {}, b = {}, bias = {}, add = {}, aux = {}, out = {}, bias_gradient = {};
  float* scratch = nullptr;
};

/// Matrix products by cuBLASLt: the only class that knows the library. One workspace, so its products belong on one
/// stream. Descriptors and algorithms are fixed when a product is prepared; running it looks nothing up and may be
/// captured.
class Blas {
 public:
  static constexpr std::int64_t workspace_bytes = std::int64_t{32} << 20;  // NVIDIA's recommendation for Hopper

  Blas();
  ~Blas();
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;

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

  struct Handle;
  std::unique_ptr<Handle> handle_;
  Memory workspace_;
  std::vector<std::string> refusals_;
};

}  // namespace harness::cuda
