#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/blas.h"
#include "machine/conditions.h"
#include "program/program.h"

namespace harness::cuda {

/// The distinct Products of a Program's step, in its order. Addresses count from where its memory would begin. Pure.
std::vector<Product> needed_products(const program::Program& program, bool tf32);

/// A Product over random operands, several sets in turn, so many that no cache holds them. `a` is scaled so that sums
/// over k are of order 1, where GELU bends and whatever is added to them counts.
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

/// Compares what runs compute with what the first of them computed.
class Judge {
 public:
  /// Before each run, the results hold the same random numbers: a run may add to them, or read them. `tolerance` is
  /// relative to the norm. Throws OutOfMemory.
  Judge(const std::vector<backend::Tensor>& results, double tolerance, Stream stream);

  /// Whether the results are within the tolerance as a whole and in each of many parts: a tile that was left out is a
  /// large share of the part in which it lies.
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

/// A stream whose work is timed by events.
class Timer {
 public:
  /// Mean seconds of a call, of as many calls as keep the device at work for `seconds` of the wall clock, round and
  /// round the runs.
  double sustained(const std::vector<Blas::Run>& runs, double seconds);
  /// Median seconds of a call of each candidate (its runs in turn) over `rounds` rounds. Each round calls every
  /// candidate once, so that clocks and temperature are the same for all.
  std::vector<double> medians(const std::vector<std::vector<Blas::Run>>& candidates, int rounds);
  Stream stream() const { return stream_.get(); }

 private:
  double measure(const std::vector<Blas::Run>& runs, int calls);
  OwnedStream stream_{Priority::normal};
  OwnedEvent begin_{OwnedEvent::Timing::on}, end_{OwnedEvent::Timing::on};
};

struct Effort {
  double warm_up_s = 1.5;  // of products before the first is timed: an idle GPU's clocks climb meanwhile
  double limit_s = 45;     // about, for all products together, by their FLOP; from it follows how many rounds there are
  int rounds = 10;         // at most; 3 at least
};

/// Times cuBLASLt's proposals (16 at most of each form, fused and separate) for every Product of the step that `known`
/// has no choice for. They take turns, and the one with the least median wins, by key_of(). Each must compute what the
/// first proposal of the plain product does with own kernels beside it: `rejected` of the choice counts those that did
/// not. Inputs are random numbers (matrix units run faster on zeros) and rotate through more memory than the L2 cache
/// holds. On the calling thread's GPU, which must be otherwise idle. A Product for which memory does not suffice is
/// left to the library's first proposal. Throws DeviceFailed if a proposal breaks the device.
backend::Tuning tune_products(const program::Program& program, bool tf32, const backend::Tuning& known,
                              std::int64_t l2_bytes, const Effort& effort = {});

/// Sustained FLOP/s of large square products of random numbers for about `seconds`.
double measure_products(config::Precision precision, double seconds);

/// Bytes per second, read plus written, of the driver's own copies within the GPU for about `seconds`.
double measure_copies(double seconds);

/// Backend::measure_host_copies() of the calling thread's GPU. `seconds`: of the wall clock, a third for
/// each way. Throws Error if memory does not suffice; keeps none of it.
machine::HostCopies measure_host_copies(double seconds);

}  // namespace harness::cuda
