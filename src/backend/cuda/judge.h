#pragma once

#include <vector>

#include "backend/cuda/blas.h"

namespace harness::cuda {

/// What the first way to compute a Product made of its operands, and whether another way makes the same.
class Judge {
 public:
  /// `operands` must outlive it; their results are overwritten. Throws Error if memory does not suffice.
  Judge(const Product& product, const Operands& operands, Blas& blas, Stream stream);

  void set_reference(const ProductChoice& choice);
  /// Within what rounding explains, as a whole and in each of many parts: a tile that was left out is a large share of
  /// the part that it lies in.
  bool agrees(const ProductChoice& choice);

 private:
  struct Kept {
    backend::Tensor result;
    Memory memory;  // the reference's
  };
  void compute(const ProductChoice& choice);
  bool is_near(const Kept& kept);

  const Product& product_;
  const Operands& at_;
  Blas& blas_;
  Stream stream_;
  std::vector<Kept> kept_;
  Memory parts_;
};

}  // namespace harness::cuda
