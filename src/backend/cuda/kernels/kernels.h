#pragma once

#include <cstdint>

#include "backend/bound.h"

struct CUstream_st;

// The cuda backend's own kernels, for what neither cuBLASLt nor cuDNN does. run() computes the operation of that type
// as defined in program/operation.h. It enqueues the work on `stream` and returns at once; it allocates nothing, reads
// nothing back and may be captured into a graph. Tensors are dense device addresses, aligned to 16 bytes; a tensor's
// type is f32, bf16 or f16 unless stated otherwise; arithmetic is f32. A kernel that needs scratch has a
// scratch_floats() and takes the memory, equally aligned, from its context; it is free again when the kernel is done.
// If the driver refuses a launch, run() throws Error naming the kernel. Results do not depend on the order in which
// blocks run (no float atomics), except those of EmbeddingBackward.
namespace harness::cuda {

using Stream = CUstream_st*;

void run(Stream stream, const backend::Bound<program::Fill>& op,
         const backend::KernelContext& context = {});  // i32 too
/// Draws the numbers of the cpu backend; the last bit may differ.
void run(Stream stream, const backend::Bound<program::Initialize>& op, const backend::KernelContext& context = {});
void run(Stream stream, const backend::Bound<program::Convert>& op, const backend::KernelContext& context = {});
void run(Stream stream, const backend::Bound<program::Record>& op, const backend::KernelContext& context = {});

void run(Stream stream, const backend::Bound<program::Embedding>& op, const backend::KernelContext& context = {});
/// Accumulates dwords with atomic additions: equal tokens add in any order.
void run(Stream stream, const backend::Bound<program::EmbeddingBackward>& op,
         const backend::KernelContext& context = {});

void run(Stream stream, const backend::Bound<program::ResidualAdd>& op,
         const backend::KernelContext& context = {});  // `out` may alias `in`
void run(Stream stream, const backend::Bound<program::LayerNorm>& op, const backend::KernelContext& context = {});
void run(Stream stream, const backend::Bound<program::LayerNormBackward>& op, const backend::KernelContext& context);
std::int64_t scratch_floats(const program::LayerNormBackward& op);
void run(Stream stream, const backend::Bound<program::RmsNorm>& op, const backend::KernelContext& context = {});
void run(Stream stream, const backend::Bound<program::RmsNormBackward>& op,
         const backend::KernelContext& context);  // in two stages
std::int64_t scratch_floats(const program::RmsNormBackward& op);

/// Takes two launches (one with block scales), plus those of ColumnSum if there is a bias gradient.
void run(Stream stream, const backend::Bound<program::Quantise>& op, const backend::KernelContext& context);
std::int64_t scratch_floats(const program::Quantise& op);

void run(Stream stream, const backend::Bound<program::Gelu>& op, const backend::KernelContext& context = {});
void run(Stream stream, const backend::Bound<program::GeluBackward>& op, const backend::KernelContext& context = {});
void run(Stream stream, const backend::Bound<program::SwiGlu>& op, const backend::KernelContext& context = {});
void run(Stream stream, const backend::Bound<program::SwiGluBackward>& op, const backend::KernelContext& context = {});
void run(Stream stream, const backend::Bound<program::BiasAdd>& op, const backend::KernelContext& context = {});
void run(Stream stream, const backend::Bound<program::ColumnSum>& op,
         const backend::KernelContext& context);  // in two stages
std::int64_t scratch_floats(const program::ColumnSum& op);

void run(Stream stream, const backend::Bound<program::Rope>& op, const backend::KernelContext& context = {});

/// Sums the losses of the rows in a fixed order.
void run(Stream stream, const backend::Bound<program::CrossEntropy>& op, const backend::KernelContext& context);
std::int64_t scratch_floats(const program::CrossEntropy& op);
void run(Stream stream, const backend::Bound<program::CrossEntropyMaximum>& op,
         const backend::KernelContext& context = {});
void run(Stream stream, const backend::Bound<program::CrossEntropySums>& op,
         const backend::KernelContext& context = {});
void run(Stream stream, const backend::Bound<program::CrossEntropyGradient>& op, const backend::KernelContext& context);
std::int64_t scratch_floats(const program::CrossEntropyGradient& op);

/// One launch over the flat buffers; learning rate, counter, scale and skip are read on the device.
void run(Stream stream, const backend::Bound<program::AdamW>& op, const backend::KernelContext& context = {});
void run(Stream stream, const backend::Bound<program::CheckFinite>& op, const backend::KernelContext& context = {});
void run(Stream stream, const backend::Bound<program::UpdateScale>& op, const backend::KernelContext& context = {});
/// Takes nine launches.
void run(Stream stream, const backend::Bound<program::TopK>& op, const backend::KernelContext& context);
std::int64_t scratch_floats(const program::TopK& op);
void run(Stream stream, const backend::Bound<program::ScatterAdd>& op, const backend::KernelContext& context = {});

// ---- the parts of unfused attention ---------------------------------------------------------------------------------
// The score matrices [query_length, key_length] of the heads of one sequence are contiguous. Scores are the raw
// product, unscaled, in the type of the attention's tensors. position_ids [query_length] i32 as in Attention; absent:
// the sequence is one document.

/// scores = softmax(scale * scores) in place, each row over its visible keys, 0 elsewhere; stats [heads, query_length]
/// f32 = log of the row's sum of exponentials.
void attention_softmax(Stream stream, backend::Tensor scores, backend::Tensor stats, backend::Tensor position_ids,
                       const program::AttentionShape& shape, double scale);
/// scores = exp(scale * scores - stats), 0 outside the visible keys: recomputes the probabilities from stored stats.
void attention_probabilities(Stream stream, backend::Tensor scores, backend::Tensor stats, backend::Tensor position_ids,
                             const program::AttentionShape& shape, double scale);
/// delta [batch, heads, query_length] f32 = sum over a head's elements of out * dout, both [batch * query_length, heads
/// * head_dim].
void attention_delta(Stream stream, backend::Tensor out, backend::Tensor dout, backend::Tensor delta,
                     const program::AttentionShape& shape);
/// dprobabilities = scale * probabilities * (dprobabilities - delta) in place: the gradient of the unscaled scores.
void attention_softmax_backward(Stream stream, backend::Tensor probabilities, backend::Tensor dprobabilities,
                                backend::Tensor delta, std::int64_t matrices, std::int64_t query_length,
                                std::int64_t key_length, double scale);

// ---- packed documents in fused attention ----------------------------------------------------------------------------

/// Packed documents of a batch, `documents` entries per sequence; an unused entry has length 0. Device memory. The
/// offsets say where the tokens of entry i begin, in elements of the attention's q (and dq), k and v (and dk, dv), out
/// (and dout) and stats by token; one more entry says where the last ends. Offsets ascend.
struct DocumentTable {
  std::int64_t *query, *key, *out, *stats;  // [batch * documents + 1]
  std::int32_t* lengths;                    // [batch * documents], in tokens
};
/// Entries of an array of offsets for this many documents: one more, rounded up to an even number. Arrays that follow
/// each other in memory then begin at multiples of 16 bytes, as cuDNN expects of every tensor.
constexpr std::int64_t document_entries(std::int64_t documents) {
  return (documents + 2) / 2 * 2;
}
/// Fills `table` from position_ids [batch * query_length] i32 as in Attention: a document begins at each position
/// number 0 and at the start of each sequence. If a sequence has more than `documents`, its last entry takes the rest.
void find_documents(Stream stream, const backend::Tensor& position_ids, const program::AttentionShape& shape,
                    std::int64_t documents, const DocumentTable& table);
/// Transposes stats from [batch, heads, query_length] f32 to [batch * query_length, heads], and back.
void stats_by_token(Stream stream, const backend::Tensor& by_head, const backend::Tensor& by_token,
                    const program::AttentionShape& shape);
void stats_by_head(Stream stream, const backend::Tensor& by_token, const backend::Tensor& by_head,
                   const program::AttentionShape& shape);

// ---- for timing -----------------------------------------------------------------------------------------------------

/// out[i] = deviation * philox_normal(seed, i) in out's type, f32, bf16 or 8-bit floats (then out.count is a multiple
/// of 4): data for timing.
void fill_random(Stream stream, backend::Tensor out, std::uint64_t seed, float deviation = 1);
/// Keeps the device busy for at least this long, so that the host can queue work behind it.
void spin(Stream stream, double seconds);

/// The most pairs of floats that difference() writes.
inline constexpr int max_difference_parts = 256;

/// Compares `a` with `b`, of one type and size, over contiguous parts of equal size, and returns the number of parts.
/// parts[2 i] = the sum of (a - b)^2 over part i, parts[2 i + 1] = that of b^2. A NaN in either stays one in the sums.
int difference(Stream stream, const backend::Tensor& a, const backend::Tensor& b, float* parts);

// ---- how kernels are started: for launch.cuh and launch.cpp ---------------------------------------------------------

/// Blocks, threads per block (a multiple of 32) and dynamic shared memory of a launch.
struct Grid {
  std::int64_t blocks;
  int threads;
  std::int64_t shared_bytes = 0;
};

struct DeviceLimits {
  int multiprocessors;
  std::int64_t shared_bytes;  // maximum per block
};

/// The limits of the calling thread's device.
DeviceLimits device_limits();

/// The untyped half of launch(): `arguments` holds the address of each parameter's value. Throws Error naming the
/// kernel if the driver refuses.
void launch_kernel(const char* name, const void* kernel, const Grid& grid, Stream stream, void** arguments);

}  // namespace harness::cuda
