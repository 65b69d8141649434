#pragma once

#include <cstdint>

#include "backend/bound.h"

// The backend's own kernels: what oneDNN does not have, or is slow at. run() computes what the operation of that type
// in program/compute.h says. All use the calling thread's OpenMP threads; sums over rows are taken in an order that
// depends on the shapes and the number of threads alone. A kernel that needs scratch has a scratch_floats() for the
// number of threads; it finds the memory in its context. Matrix products and attention are prepared and not run from
// here: compile.cpp.
namespace harness::cpu {

void run(const Bound<Fill>& op, const KernelContext& context = {});
void run(const Bound<Initialize>& op, const KernelContext& context = {});
void run(const Bound<Convert>& op, const KernelContext& context = {});
void run(const Bound<Record>& op, const KernelContext& context = {});

void run(const Bound<Embedding>& op, const KernelContext& context = {});
void run(const Bound<EmbeddingBackward>& op, const KernelContext& context = {});

void run(const Bound<ResidualAdd>& op, const KernelContext& context = {});
void run(const Bound<LayerNorm>& op, const KernelContext& context = {});
void run(const Bound<LayerNormBackward>& op, const KernelContext& context);
std::int64_t scratch_floats(const LayerNormBackward& op, int threads);

void run(const Bound<Gelu>& op, const KernelContext& context = {});
void run(const Bound<GeluBackward>& op, const KernelContext& context = {});
void run(const Bound<BiasAdd>& op, const KernelContext& context = {});
void run(const Bound<ColumnSum>& op, const KernelContext& context = {});

void run(const Bound<AttentionMerge>& op, const KernelContext& context = {});

void run(const Bound<CrossEntropy>& op, const KernelContext& context);
std::int64_t scratch_floats(const CrossEntropy& op, int threads);
void run(const Bound<CrossEntropyMaximum>& op, const KernelContext& context = {});
void run(const Bound<CrossEntropySums>& op, const KernelContext& context = {});
void run(const Bound<CrossEntropyGradient>& op, const KernelContext& context = {});

void run(const Bound<AdamW>& op, const KernelContext& context = {});

/// to += from (sum) or to = max(to, from): what a collective's algorithm does with what it receives. One thread.
void reduce(Tensor to, const void* a, const void* b, Reduction reduction);

}  // namespace harness::cpu
