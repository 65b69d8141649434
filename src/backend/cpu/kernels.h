#pragma once

#include <cstdint>

#include "backend/bound.h"

// The backend's own kernels, for operations that oneDNN lacks or runs slowly. run() computes the operation as
// program/operation.h defines it. Kernels use the calling thread's OpenMP threads; the order of sums over rows depends
// on the shapes and the number of threads alone. A kernel that needs scratch has a scratch_floats() for the number of
// threads and finds the memory in its context. Matrix products and attention are in compile.cpp.
namespace harness::cpu {

void run(const backend::Bound<program::Fill>& op, const backend::KernelContext& context = {});
void run(const backend::Bound<program::Initialize>& op, const backend::KernelContext& context = {});
void run(const backend::Bound<program::Convert>& op, const backend::KernelContext& context = {});
void run(const backend::Bound<program::Record>& op, const backend::KernelContext& context = {});

void run(const backend::Bound<program::Embedding>& op, const backend::KernelContext& context = {});
void run(const backend::Bound<program::EmbeddingBackward>& op, const backend::KernelContext& context = {});

void run(const backend::Bound<program::ResidualAdd>& op, const backend::KernelContext& context = {});
void run(const backend::Bound<program::LayerNorm>& op, const backend::KernelContext& context = {});
void run(const backend::Bound<program::LayerNormBackward>& op, const backend::KernelContext& context);
std::int64_t scratch_floats(const program::LayerNormBackward& op, int threads);
void run(const backend::Bound<program::RmsNorm>& op, const backend::KernelContext& context = {});
void run(const backend::Bound<program::RmsNormBackward>& op, const backend::KernelContext& context);
std::int64_t scratch_floats(const program::RmsNormBackward& op, int threads);

void run(const backend::Bound<program::Quantise>& op, const backend::KernelContext& context = {});
/// to[i] = codes[i] * its scale, for 8-bit floats in rows of `width`. Exact for the scales that Quantise makes.
void widen(const backend::Tensor& codes, const backend::Tensor& scales, std::int64_t width, bf16* to);
void run(const backend::Bound<program::Gelu>& op, const backend::KernelContext& context = {});
void run(const backend::Bound<program::GeluBackward>& op, const backend::KernelContext& context = {});
void run(const backend::Bound<program::SwiGlu>& op, const backend::KernelContext& context = {});
void run(const backend::Bound<program::SwiGluBackward>& op, const backend::KernelContext& context = {});
void run(const backend::Bound<program::BiasAdd>& op, const backend::KernelContext& context = {});
void run(const backend::Bound<program::ColumnSum>& op, const backend::KernelContext& context = {});

void run(const backend::Bound<program::Rope>& op, const backend::KernelContext& context);
std::int64_t scratch_floats(const program::Rope& op, int threads);

void run(const backend::Bound<program::CrossEntropy>& op, const backend::KernelContext& context);
std::int64_t scratch_floats(const program::CrossEntropy& op, int threads);
void run(const backend::Bound<program::CrossEntropyMaximum>& op, const backend::KernelContext& context = {});
void run(const backend::Bound<program::CrossEntropySums>& op, const backend::KernelContext& context = {});
void run(const backend::Bound<program::CrossEntropyGradient>& op, const backend::KernelContext& context = {});

void run(const backend::Bound<program::AdamW>& op, const backend::KernelContext& context = {});
void run(const backend::Bound<program::CheckFinite>& op, const backend::KernelContext& context = {});
void run(const backend::Bound<program::UpdateScale>& op, const backend::KernelContext& context = {});

/// The result does not depend on the number of threads.
void run(const backend::Bound<program::TopK>& op, const backend::KernelContext& context = {});
void run(const backend::Bound<program::ScatterAdd>& op, const backend::KernelContext& context = {});

/// to = a + b (sum) or max(a, b), as collectives reduce what they receive. `to` may be a or b. Single-threaded.
void reduce(backend::Tensor to, const void* a, const void* b, program::Reduction reduction);

}  // namespace harness::cpu
