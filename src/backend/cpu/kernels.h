#pragma once

#include <cstdint>

#include "backend/tensor.h"
#include "program/operation.h"

// The backend's own kernels: what oneDNN has not, or has only slowly. The mathematics of each is that of the operation
// of the same name in program/operation.h. All use the calling thread's OpenMP threads; sums over rows are taken in an
// order that depends on the shapes and the number of threads alone.
namespace harness::cpu {

void fill(Tensor out, double value);
void convert(Tensor in, Tensor out);
/// Initialize; `coordinate` is the rank's on the operation's axis.
void initialize(const Initialize& op, Tensor out, int coordinate, std::uint64_t seed);

void gelu(Tensor in, Tensor out);
void gelu_backward(Tensor in, Tensor data);
void residual_add(Tensor in, Tensor bias, Tensor residual, Tensor out, std::int64_t rows, std::int64_t width);
void column_sum(Tensor in, Tensor out, std::int64_t rows, std::int64_t width, bool accumulate);

struct LayerNormArguments {
  Tensor in, bias, residual, gamma, beta, sum, out, mean, rstd;
};
void layer_norm(const LayerNormArguments& t, std::int64_t rows, std::int64_t width, double epsilon);
struct LayerNormBackwardArguments {
  Tensor dout, sum, gamma, mean, rstd, dresidual, din, dgamma, dbeta, dbias;
};
/// `scratch`: layer_norm_backward_scratch(width, threads) floats.
void layer_norm_backward(const LayerNormBackwardArguments& t, std::int64_t rows, std::int64_t width, bool accumulate,
                         float* scratch);
std::int64_t layer_norm_backward_scratch(std::int64_t width, int threads);

/// `first`: the number of the shard's first row; `positions` absent: not added. `scratch` of the backward: none.
void embedding(Tensor tokens, Tensor words, Tensor positions, Tensor out, const Embedding& op, std::int64_t first);
void embedding_backward(Tensor tokens, Tensor dout, Tensor dwords, Tensor dpositions, const EmbeddingBackward& op,
                        std::int64_t first);

/// `row_losses`: `rows` floats of scratch.
void cross_entropy(Tensor logits, Tensor labels, Tensor loss, const CrossEntropy& op, float* row_losses);
void cross_entropy_maximum(Tensor logits, Tensor maximum, std::int64_t rows, std::int64_t vocab);
void cross_entropy_sums(Tensor logits, Tensor labels, Tensor maximum, Tensor target, Tensor sum, std::int64_t rows,
                        std::int64_t vocab, std::int64_t first);
void cross_entropy_gradient(Tensor logits, Tensor labels, Tensor maximum, Tensor target, Tensor sum, Tensor loss,
                            const CrossEntropyGradient& op, std::int64_t first);

void attention_merge(Tensor part_out, Tensor part_stats, Tensor out, Tensor stats, const AttentionShape& shape);

/// `step`: from 1.
void adamw(Tensor master, Tensor moment1, Tensor moment2, Tensor gradient, Tensor weights, double step,
           double learning_rate, const AdamW& op);

/// to += from (sum) or to = max(to, from): what a collective's algorithm does with what it receives. One thread.
void reduce(Tensor to, const void* a, const void* b, Reduction reduction);

}  // namespace harness::cpu
