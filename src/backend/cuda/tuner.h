#pragma once

#include "backend/backend.h"
#include "backend/cuda/product.h"
#include "backend/cuda/trial.h"
#include "program/program.h"

namespace harness::cuda {

/// The distinct Products of a Program's step, each with one operation that needs it. Pure.
struct NeededProduct {
  Product product;
  program::Matmul operation;
};
std::vector<NeededProduct> needed_products(const program::Program& program, bool tf32);

/// Times the library's proposals, fused and separate, for every Product of the step that `known` has no choice for, and
/// returns the fastest right one of each (trial.h) by key_of(), on a GPU that products have warmed up. On the calling
/// thread's GPU, which must be otherwise idle. Inputs are random numbers (matrix units run faster on zeros) and rotate
/// through more memory than the L2 cache holds. A Product for which memory does not suffice is left to the library's
/// first proposal.
backend::Tuning tune_products(const program::Program& program, bool tf32, const backend::Tuning& known,
                              std::int64_t l2_bytes, const Effort& effort = {});

/// What Backend::time_alone() promises of products, in the order of the step, on the calling thread's GPU. What
/// `tuning` does not name runs as the library proposes first.
std::vector<backend::AloneTiming> time_products(const program::Program& program, bool tf32,
                                                const backend::Tuning& tuning, std::int64_t l2_bytes, double seconds);

/// Sustained FLOP/s of large square products of random numbers for about `seconds`.
double measure_products(config::Precision precision, double seconds);

/// Bytes per second, read plus written, of the driver's own copies within the GPU for about `seconds`.
double measure_copies(double seconds);

}  // namespace harness::cuda
