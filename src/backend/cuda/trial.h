#pragma once

#include <cstdint>
#include <vector>

#include "backend/cuda/blas.h"
#include "backend/cuda/product.h"
#include "backend/cuda/timer.h"
#include "program/compute.h"

namespace harness::cuda {

/// How much is tried to find the fastest form of a Product.
struct Effort {
  double warm_up_s = 1.5;   // of products before the first is timed: an idle GPU's clocks climb meanwhile
  double limit_s = 45;      // for the trials of all products together; then the fastest until then are the finalists
  int proposals = 64;       // of the library, per form
  int varied = 2;           // times that the fastest of each form so far is varied (algorithm.h)
  int variants = 48;        // of each
  double quick_s = 0.5e-3;  // of calls of each, to find the finalists
  int finalists = 8;
  int rounds = 10;  // of one call of each finalist
  // A GPU at its power limit slows down by what a product draws, so in the end some finalists run without the others,
  // twice in turns; all products together for no more than a quarter of limit_s.
  int lasting = 3;
  double lasting_s = 0.15;  // of each turn; 0: none
};

/// Random operands of a Product, several sets in turn, so many that no cache holds them. `a` is scaled so that sums
/// over k are of order 1, where GELU bends and whatever is added to them counts.
class Rotation {
 public:
  /// `operation` says which operands there are.
  Rotation(const Product& product, const program::Matmul& operation, std::int64_t at_least_bytes);
  void fill(Stream stream) const;
  const std::vector<Operands>& operands() const { return operands_; }

 private:
  float deviation_of_a_ = 1;
  Memory memory_;
  std::vector<Operands> operands_;
};

/// A Product over each set of its operands.
std::vector<Blas::Run> runs_of(const Product& product, const Rotation& rotation, Blas& blas,
                               const ProductChoice& choice);

/// The fastest of the library's proposals for a Product and their variants, among those that compute what its first
/// proposal for the plain product does with own kernels beside it: `rejected` of the choice counts those that were fast
/// and did not. Tries for about effort.limit_s. Throws Error if none runs, or memory does not suffice, and DeviceFailed
/// if one breaks the device.
ProductChoice fastest(const Product& product, const program::Matmul& operation, Blas& blas, Timer& timer,
                      std::int64_t l2_bytes, const Effort& effort);

}  // namespace harness::cuda
