#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/blas.h"
#include "machine/conditions.h"
#include "program/program.h"

namespace harness::cuda {

/// Returns the distinct Products of a Program's step, in its order. Addresses are relative to a placeholder. Pure.
std::vector<Product> needed_products(const program::Program& program, bool tf32);

/// A Product on random operands. Rotates through several sets of them, too many for any cache. `a` is scaled so that
/// sums over k are of order 1, where GELU is nonlinear and added terms matter.
class Rotation {
 public:
  /// Throws OutOfMemory.
  Rotation(const Product& needed, std::int64_t at_least_bytes, Stream stream);
  const std::vector<Product>& products() const { return products_; }
  std::vector<Blas::Run> runs(Blas& blas, const ProductChoice& choice) const;

 private:
  Memory memory_;
  std::vector<Product> products_;
};

/// Compares the results of runs with those of the first run.
class Judge {
 public:
  /// Before each run, the results are filled with the same random numbers, because a run may add to them or read them.
  /// `tolerance` is relative to the norm. Throws OutOfMemory.
  Judge(const std::vector<backend::Tensor>& results, double tolerance, Stream stream);

  /// Returns whether the results are within the tolerance, both as a whole and in each of many parts: a missing tile is
  /// a large share of its part.
  bool agrees(const Blas::Run& run);
  bool has_reference() const { return has_reference_; }

 private:
  struct Kept {
    backend::Tensor result;
    Memory reference;
  };
  void compute(const Blas::Run& run);
  bool is_near(const Kept& kept);

  double tolerance_;
  Stream stream_;
  std::vector<Kept> kept_;
  bool has_reference_ = false;
  Memory parts_;
};

/// Times work on its own stream with events.
class Timer {
 public:
  /// Returns the mean seconds per call over as many calls as keep the device busy for `seconds` of wall-clock time,
  /// cycling through the runs.
  double sustained(const std::vector<Blas::Run>& runs, double seconds);
  /// Returns the median seconds per call of each candidate over `rounds` rounds, cycling through its runs. Each round
  /// calls every candidate once, so that clocks and temperature are the same for all.
  std::vector<double> medians(const std::vector<std::vector<Blas::Run>>& candidates, int rounds);
  Stream stream() const { return stream_.get(); }

 private:
  double measure(const std::vector<Blas::Run>& runs, int calls);
  OwnedStream stream_{Priority::normal};
  OwnedEvent begin_{OwnedEvent::Timing::on}, end_{OwnedEvent::Timing::on};
};

struct Effort {
  double warm_up_s = 1.5;  // of products before the first timing, while an idle GPU's clocks ramp up
  double limit_s = 45;     // approximate, for all products together, shared by FLOP; determines the number of rounds
  int rounds = 10;         // maximum; the minimum is 3
};

/// Times cuBLASLt's proposals (at most 16 of each form, fused and separate) for every Product of the step that has no
/// choice in `known`. Proposals take turns, and the least median wins, keyed by key_of(). Each must compute what the
/// first proposal of the separate form (plain product plus own kernels) does; `rejected` of the choice counts those
/// that do not. Inputs are random numbers (matrix units run faster on zeros) and rotate through more memory than the L2
/// cache holds. Runs on the calling thread's GPU, which must be otherwise idle. A Product that does not fit in memory
/// is left to the library's first proposal. Throws DeviceFailed if a proposal breaks the device.
backend::Tuning tune_products(const program::Program& program, bool tf32, const backend::Tuning& known,
                              std::int64_t l2_bytes, const Effort& effort = {});

/// Returns the sustained FLOP/s of large square products of random numbers, run for about `seconds`.
double measure_products(config::Precision precision, double seconds);

/// Returns bytes per second, read plus written, of the driver's own copies within the GPU, run for about `seconds`.
double measure_copies(double seconds);

/// Backend::measure_host_copies() on the calling thread's GPU. `seconds` of wall-clock time: a third each for in, out
/// and both. Throws Error if memory does not suffice; keeps none of it.
machine::HostCopies measure_host_copies(double seconds);

}  // namespace harness::cuda
