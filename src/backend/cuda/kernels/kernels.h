#pragma once

#include <cstdint>

#include "backend/bound.h"

struct CUstream_st;

// The cuda backend's own kernels: what neither cuBLASLt nor cuDNN does. run() computes what the operation of that type
// in program/compute.h says. It puts the work on `stream` and returns at once; it allocates nothing, reads nothing back
// and may be captured into a graph. Tensors are device addresses, dense, aligned to 16 bytes; a tensor's type is f32 or
// bf16 unless said otherwise; arithmetic is f32. A kernel that needs scratch has a scratch_floats() and finds the
// memory, as aligned, in its context; it is free again when the kernel is done. A launch that the driver refuses throws
// Error naming the kernel. Results do not depend on the order in which blocks run (no float atomics), except those of
// EmbeddingBackward.
namespace harness::cuda {

using Stream = CUstream_st*;

void run(Stream stream, const Bound<Fill>& op, const KernelContext& context = {});  // i32 too
/// The same numbers as on the cpu backend, to the last bit but one.
void run(Stream stream, const Bound<Initialize>& op, const KernelContext& context = {});
void run(Stream stream, const Bound<Convert>& op, const KernelContext& context = {});
void run(Stream stream, const Bound<Record>& op, const KernelContext& context = {});

void run(Stream stream, const Bound<Embedding>& op, const KernelContext& context = {});
/// dwords by atomic additions: equal tokens add in any order.
void run(Stream stream, const Bound<EmbeddingBackward>& op, const KernelContext& context = {});

void run(Stream stream, const Bound<ResidualAdd>& op, const KernelContext& context = {});  // out may be in
void run(Stream stream, const Bound<LayerNorm>& op, const KernelContext& context = {});
void run(Stream stream, const Bound<LayerNormBackward>& op, const KernelContext& context);
std::int64_t scratch_floats(const LayerNormBackward& op);

void run(Stream stream, const Bound<Gelu>& op, const KernelContext& context = {});
void run(Stream stream, const Bound<GeluBackward>& op, const KernelContext& context = {});
void run(Stream stream, const Bound<BiasAdd>& op, const KernelContext& context = {});
void run(Stream stream, const Bound<ColumnSum>& op, const KernelContext& context);  // in two stages
std::int64_t scratch_floats(const ColumnSum& op);

void run(Stream stream, const Bound<AttentionMerge>& op, const KernelContext& context = {});

/// The losses of the rows are summed in a fixed order.
void run(Stream stream, const Bound<CrossEntropy>& op, const KernelContext& context);
std::int64_t scratch_floats(const CrossEntropy& op);
void run(Stream stream, const Bound<CrossEntropyMaximum>& op, const KernelContext& context = {});
void run(Stream stream, const Bound<CrossEntropySums>& op, const KernelContext& context = {});
void run(Stream stream, const Bound<CrossEntropyGradient>& op, const KernelContext& context);
std::int64_t scratch_floats(const CrossEntropyGradient& op);

/// One launch over the flat buffers; learning rate and counter are read on the device.
void run(Stream stream, const Bound<AdamW>& op, const KernelContext& context = {});

// ---- the parts of unfused attention ---------------------------------------------------------------------------------
// `matrices` score matrices [query_length, key_length] lie one after the other. Scores are as a product left them,
// unscaled, in the type of the attention's tensors.

/// scores = softmax(scale * scores) in place, each row over its visible keys, 0 beyond them; stats [matrices,
/// query_length] f32 = log of the row's sum of exponentials.
void attention_softmax(Stream stream, Tensor scores, Tensor stats, std::int64_t matrices, std::int64_t query_length,
                       std::int64_t key_length, double scale, bool causal);
/// scores = exp(scale * scores - stats), 0 beyond the visible keys: the probabilities again, from kept stats.
void attention_probabilities(Stream stream, Tensor scores, Tensor stats, std::int64_t matrices,
                             std::int64_t query_length, std::int64_t key_length, double scale, bool causal);
/// delta [batch, heads, query_length] f32 = sum over a head's elements of out * dout, both [batch * query_length, heads
/// * head_dim].
void attention_delta(Stream stream, Tensor out, Tensor dout, Tensor delta, const AttentionShape& shape);
/// dprobabilities = scale * probabilities * (dprobabilities - delta) in place: the gradient of the unscaled scores.
void attention_softmax_backward(Stream stream, Tensor probabilities, Tensor dprobabilities, Tensor delta,
                                std::int64_t matrices, std::int64_t query_length, std::int64_t key_length,
                                double scale);

// ---- for timing -----------------------------------------------------------------------------------------------------

/// out[i] = philox_normal(seed, i) in out's type: data for timing.
void fill_random(Stream stream, Tensor out, std::uint64_t seed);
/// Keeps the device busy for at least this long, so that the host can queue work behind it.
void spin(Stream stream, double seconds);

}  // namespace harness::cuda
