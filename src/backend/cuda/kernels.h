#pragma once

#include <cstdint>

#include "backend/tensor.h"
#include "program/operation.h"

struct CUstream_st;

// The cuda backend's own kernels: what neither cuBLASLt nor cuDNN does. The mathematics of each is that of the
// operation of the same name in program/compute.h. Every function puts its work on `stream` and returns at once; it
// allocates nothing, reads nothing back and may be captured into a graph. Tensors are device addresses, dense, aligned
// to 16 bytes; a tensor's type is f32 or bf16 unless said otherwise; arithmetic is f32. Scratch is as aligned, belongs
// to the caller and is free again when the kernel is done; functions that need some say how much. A launch that the
// driver refuses throws Error naming the kernel. Results do not depend on the order in which blocks run (no float
// atomics), but for embedding_backward.
namespace harness::cuda {

using Stream = CUstream_st*;

void fill(Stream stream, Tensor out, double value);  // i32 too
void convert(Stream stream, Tensor in, Tensor out);
/// The same numbers as on the cpu backend, to the last bit but one. `coordinate`: the rank's on the operation's axis.
void initialize(Stream stream, const Initialize& op, Tensor out, int coordinate, std::uint64_t seed);
/// counter and ring as in Record: counter [1] i32, ring f32.
void record(Stream stream, Tensor value, Tensor ring, Tensor counter);

void gelu(Stream stream, Tensor in, Tensor out);
void gelu_backward(Stream stream, Tensor in, Tensor data);
/// out = in + bias (broadcast over rows) + residual; bias and residual may be absent, out may be in.
void residual_add(Stream stream, Tensor in, Tensor bias, Tensor residual, Tensor out, std::int64_t rows,
                  std::int64_t width);
/// Sums over rows in two stages. `scratch`: column_sum_scratch floats.
void column_sum(Stream stream, Tensor in, Tensor out, std::int64_t rows, std::int64_t width, bool accumulate,
                float* scratch);
std::int64_t column_sum_scratch(std::int64_t rows, std::int64_t width);

struct LayerNormArguments {
  Tensor in, bias, residual, gamma, beta, sum, out, mean, rstd;
};
void layer_norm(Stream stream, const LayerNormArguments& t, std::int64_t rows, std::int64_t width, double epsilon);
struct LayerNormBackwardArguments {
  Tensor dout, sum, gamma, mean, rstd, dresidual, din, dgamma, dbeta, dbias;
};
void layer_norm_backward(Stream stream, const LayerNormBackwardArguments& t, std::int64_t rows, std::int64_t width,
                         bool accumulate, float* scratch);
std::int64_t layer_norm_backward_scratch(std::int64_t rows, std::int64_t width);

/// `first`: the number of the shard's first row; `positions` absent: not added.
void embedding(Stream stream, Tensor tokens, Tensor words, Tensor positions, Tensor out, const Embedding& op,
               std::int64_t first);
/// dwords and dpositions are f32. dwords by atomic additions: equal tokens add in any order.
void embedding_backward(Stream stream, Tensor tokens, Tensor dout, Tensor dwords, Tensor dpositions,
                        const EmbeddingBackward& op, std::int64_t first);

/// `row_losses`: op.rows floats of scratch, summed in a fixed order.
void cross_entropy(Stream stream, Tensor logits, Tensor labels, Tensor loss, const CrossEntropy& op, float* row_losses);
void cross_entropy_maximum(Stream stream, Tensor logits, Tensor maximum, std::int64_t rows, std::int64_t vocab);
void cross_entropy_sums(Stream stream, Tensor logits, Tensor labels, Tensor maximum, Tensor target, Tensor sum,
                        std::int64_t rows, std::int64_t vocab, std::int64_t first);
void cross_entropy_gradient(Stream stream, Tensor logits, Tensor labels, Tensor maximum, Tensor target, Tensor sum,
                            Tensor loss, const CrossEntropyGradient& op, std::int64_t first, float* row_losses);

void attention_merge(Stream stream, Tensor part_out, Tensor part_stats, Tensor out, Tensor stats,
                     const AttentionShape& shape);

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

/// Learning rate [1] f32 and counter [1] i32 are read on the device; step number = counter + 1. One launch over flat
/// f32 buffers; weights (optional) in their own type.
void adamw(Stream stream, const AdamW& op, Tensor master, Tensor moment1, Tensor moment2, Tensor gradient,
           Tensor weights, Tensor counter, Tensor learning_rate);

/// out[i] = philox_normal(seed, i) in out's type: data for timing.
void fill_random(Stream stream, Tensor out, std::uint64_t seed);
/// Keeps the device busy for at least this long, so that the host can queue work behind it.
void spin(Stream stream, double seconds);

}  // namespace harness::cuda
