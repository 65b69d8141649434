#pragma once

#include <cstdint>
#include <vector>

#include "backend/cuda/blas.h"
#include "backend/cuda/product.h"
#include "program/compute.h"

namespace harness::cuda {

/// How much is tried to find the fastest form of a Product.
struct Effort {
  double warm_up_s = 1.5;  // of products before the first is timed: an idle GPU's clocks climb meanwhile
  int proposals = 64;      // of the library, per form
  int varied = 2;     // of the fastest proposals: variants of their tile, cluster and order of blocks are tried too
  int variants = 40;  // of each
  double quick_s = 0.5e-3;  // of calls of each proposal, to find the finalists
  int finalists = 4;
  int rounds = 20;  // of one call of each finalist
};

/// A stream whose work is timed by events.
class Timer {
 public:
  /// Seconds of one call on average, of as many as fill `seconds`, going round the runs.
  double mean(const std::vector<Blas::Run>& runs, double seconds);
  /// The same of as many as keep the device at work for `seconds` of the wall clock.
  double sustained(const std::vector<Blas::Run>& runs, double seconds);
  /// The median time of a call of each contestant, whose runs take turns: each in every round, so that clocks and
  /// temperature are the same for all.
  std::vector<double> medians(const std::vector<std::vector<Blas::Run>>& contestants, int rounds);
  Stream stream() const { return stream_.get(); }

 private:
  double measure(const std::vector<Blas::Run>& runs, int calls);
  OwnedStream stream_{Priority::normal};
  OwnedEvent begin_{OwnedEvent::Timing::on}, end_{OwnedEvent::Timing::on};
};

/// Random operands of a Product, several sets in turn, so many that no cache holds them.
class Rotation {
 public:
  /// `operation` says which operands there are.
  Rotation(const Product& product, const program::Matmul& operation, std::int64_t at_least_bytes);
  void fill(Stream stream) const;
  const std::vector<Operands>& operands() const { return operands_; }

 private:
  Memory memory_;
  std::vector<Operands> operands_;
};

/// A Product over each set of its operands.
std::vector<Blas::Run> runs_of(const Product& product, const Rotation& rotation, Blas& blas,
                               const ProductChoice& choice);

/// The fastest of the library's proposals for a Product among those that compute what its first proposal for the plain
/// product does with own kernels beside it: `rejected` of the choice counts those that were fast and did not. Throws
/// Error if none runs, or memory does not suffice.
ProductChoice fastest(const Product& product, const program::Matmul& operation, Blas& blas, Timer& timer,
                      std::int64_t l2_bytes, const Effort& effort);

}  // namespace harness::cuda
