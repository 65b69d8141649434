#pragma once

#include <functional>
#include <vector>

#include "backend/cuda/runtime.h"
#include "backend/tensor.h"

namespace harness::cuda {

/// What the first way to compute something made of its operands, and whether another way makes the same.
class Judge {
 public:
  using Run = std::function<void(Stream)>;
  /// `results` are overwritten. Before each run they hold the same random numbers of deviation `before`: a run may add
  /// to them, or read them too; 0: zeros, for results that are not dense. `tolerance` is relative to the norm. Throws
  /// Error if memory does not suffice.
  Judge(const std::vector<backend::Tensor>& results, double tolerance, float before, Stream stream);

  void set_reference(const Run& run);
  /// Within the tolerance as a whole, and in each of many parts: a tile that was left out is a large share of the part
  /// that it lies in.
  bool agrees(const Run& run);

 private:
  struct Kept {
    backend::Tensor result;
    Memory memory;  // the reference's
  };
  void compute(const Run& run);
  bool is_near(const Kept& kept);

  double tolerance_;
  float before_;
  Stream stream_;
  std::vector<Kept> kept_;
  Memory parts_;
};

}  // namespace harness::cuda
