#pragma once

#include <string_view>

#include "program/view.h"

namespace harness::program {

// Computing operations of the forward and backward pass, except attention (attention.h). Conventions:
// program/operation.h.

// ---- filling and moving -----------------------------------------------------------------------------------------

/// out[i] = value.
template <class T>
struct FillOf {
  T out = {};
  double value = 0;
  static constexpr std::string_view name = "fill";
  static constexpr auto fields(auto& op) { return std::tuple_cat(writes(op.out), parameters(op.value)); }
};
using Fill = FillOf<View>;

/// Fills one parameter with numbers that depend on (seed, global index) alone. The local tensor is the slice
/// [:, c * part : (c + 1) * part, :] of a global tensor [outer, full, inner], c the coordinate on `axis`; element
/// (i, j, k) has global index first_index + (i * full + j) * inner + k and value mean + deviation * normal(index).
template <class T>
struct InitializeOf {
  T out = {};
  std::int64_t first_index = 0;
  Axis axis = Axis::tensor;
  std::int64_t outer = 1, full = 1, part = 1, inner = 1;
  double mean = 0, deviation = 0;
  static constexpr std::string_view name = "initialize";
  static constexpr auto fields(auto& op) {
    return std::tuple_cat(writes(op.out), parameters(op.first_index, op.axis, op.outer, op.full, op.part, op.inner,
                                                     op.mean, op.deviation));
  }
};
using Initialize = InitializeOf<View>;

/// out = in, converted to out's element type.
template <class T>
struct ConvertOf {
  T in = {}, out = {};
  static constexpr std::string_view name = "convert";
  static constexpr auto fields(auto& op) { return std::tuple_cat(reads(op.in), writes(op.out)); }
};
using Convert = ConvertOf<View>;

/// ring[counter mod ring.count] = value[0]; counter += 1. Ends a step: the counter is the number of finished steps.
template <class T>
struct RecordOf {
  T value = {}, ring = {}, counter = {};
  static constexpr std::string_view name = "record";
  static constexpr auto fields(auto& op) { return std::tuple_cat(reads(op.value), updates(op.ring, op.counter)); }
};
using Record = RecordOf<View>;

// ---- embedding --------------------------------------------------------------------------------------------------

/// out[t] = words[tokens[t] - first] (0 if another rank holds that row) + positions[t mod sequence] (optional; on
/// coordinate 0 of the shard's axis only, so that the sum over the axis is the embedding).
/// tokens [rows], words [shard.rows, width], positions [sequence, width], out [rows, width]. position_ids [rows] i32
/// (optional), each less than sequence, replace t mod sequence.
template <class T>
struct EmbeddingOf {
  T tokens = {}, words = {}, positions = {}, out = {};
  std::int64_t rows = 0, width = 0, sequence = 0;
  Shard shard = {};
  T position_ids = {};
  static constexpr std::string_view name = "embedding";
  static constexpr auto fields(auto& op) {
    return std::tuple_cat(reads(op.tokens, op.words, op.positions), writes(op.out),
                          parameters(op.rows, op.width, op.sequence, op.shard), optional(reads(op.position_ids)));
  }
  static constexpr auto one_type(auto& op) { return std::tie(op.words, op.positions, op.out); }
};
using Embedding = EmbeddingOf<View>;

/// dwords[tokens[t] - first] += dout[t] for the rows this rank holds; dpositions[t mod sequence] (+)= dout[t].
/// dwords is always accumulated into; dpositions (optional) when accumulate_positions, else replaced. position_ids as
/// in Embedding.
template <class T>
struct EmbeddingBackwardOf {
  T tokens = {}, dout = {}, dwords = {}, dpositions = {};
  std::int64_t rows = 0, width = 0, sequence = 0;
  Shard shard = {};
  bool accumulate_positions = false;
  T position_ids = {};
  static constexpr std::string_view name = "embedding_backward";
  static constexpr auto fields(auto& op) {
    return std::tuple_cat(reads(op.tokens, op.dout), updates(op.dwords),
                          results(op.accumulate_positions, op.dpositions),
                          parameters(op.rows, op.width, op.sequence, op.shard, op.accumulate_positions),
                          optional(reads(op.position_ids)));
  }
};
using EmbeddingBackward = EmbeddingBackwardOf<View>;

// ---- residual stream and layer norm -------------------------------------------------------------------------------

/// out = in + bias (broadcast over rows) + residual.
template <class T>
struct ResidualAddOf {
  T in = {}, bias = {}, residual = {}, out = {};
  std::int64_t rows = 0, width = 0;
  static constexpr std::string_view name = "residual_add";
  static constexpr auto fields(auto& op) {
    return std::tuple_cat(reads(op.in, op.bias, op.residual), writes(op.out), parameters(op.rows, op.width));
  }
  static constexpr auto one_type(auto& op) { return std::tie(op.in, op.bias, op.residual, op.out); }
};
using ResidualAdd = ResidualAddOf<View>;

/// sum = in + bias + residual (each of the two optional; with neither, `sum` is absent and in itself is normalised);
/// out = (sum - mean) * rstd * gamma + beta, over each row. mean, rstd [rows] f32.
template <class T>
struct LayerNormOf {
  T in = {}, bias = {}, residual = {}, gamma = {}, beta = {}, sum = {}, out = {}, mean = {}, rstd = {};
  std::int64_t rows = 0, width = 0;
  double epsilon = 1e-5;
  static constexpr std::string_view name = "layer_norm";
  static constexpr auto fields(auto& op) {
    return std::tuple_cat(reads(op.in, op.bias, op.residual, op.gamma, op.beta),
                          writes(op.sum, op.out, op.mean, op.rstd), parameters(op.rows, op.width, op.epsilon));
  }
  static constexpr auto one_type(auto& op) {
    return std::tie(op.in, op.bias, op.residual, op.gamma, op.beta, op.sum, op.out);
  }
};
using LayerNorm = LayerNormOf<View>;

/// din = d(out)/d(sum)^T dout + dresidual (optional: the gradient that reaches `sum` past the norm).
/// dgamma, dbeta and dbias (optional; the column sum of din) are f32 and added to when `accumulate`, else replaced.
/// `sum` is the tensor the forward pass normalised.
template <class T>
struct LayerNormBackwardOf {
  T dout = {}, sum = {}, gamma = {}, mean = {}, rstd = {}, dresidual = {}, din = {}, dgamma = {}, dbeta = {},
    dbias = {};
  std::int64_t rows = 0, width = 0;
  bool accumulate = false;
  static constexpr std::string_view name = "layer_norm_backward";
  static constexpr auto fields(auto& op) {
    return std::tuple_cat(reads(op.dout, op.sum, op.gamma, op.mean, op.rstd, op.dresidual), writes(op.din),
                          results(op.accumulate, op.dgamma, op.dbeta, op.dbias),
                          parameters(op.rows, op.width, op.accumulate));
  }
  static constexpr auto one_type(auto& op) { return std::tie(op.dout, op.sum, op.gamma, op.dresidual, op.din); }
};
using LayerNormBackward = LayerNormBackwardOf<View>;

/// A norm with sum as in LayerNorm and out = sum * rstd * gamma, rstd = 1 / sqrt(mean of sum^2 + epsilon) of each row
/// (Zhang and Sennrich 2019, arXiv 1910.07467). rstd [rows] f32.
template <class T>
struct RmsNormOf {
  T in = {}, bias = {}, residual = {}, gamma = {}, sum = {}, out = {}, rstd = {};
  std::int64_t rows = 0, width = 0;
  double epsilon = 1e-5;
  static constexpr std::string_view name = "rms_norm";
  static constexpr auto fields(auto& op) {
    return std::tuple_cat(reads(op.in, op.bias, op.residual, op.gamma), writes(op.sum, op.out, op.rstd),
                          parameters(op.rows, op.width, op.epsilon));
  }
  static constexpr auto one_type(auto& op) { return std::tie(op.in, op.bias, op.residual, op.gamma, op.sum, op.out); }
};
using RmsNorm = RmsNormOf<View>;

/// As LayerNormBackward, without a mean and without beta.
template <class T>
struct RmsNormBackwardOf {
  T dout = {}, sum = {}, gamma = {}, rstd = {}, dresidual = {}, din = {}, dgamma = {}, dbias = {};
  std::int64_t rows = 0, width = 0;
  bool accumulate = false;
  static constexpr std::string_view name = "rms_norm_backward";
  static constexpr auto fields(auto& op) {
    return std::tuple_cat(reads(op.dout, op.sum, op.gamma, op.rstd, op.dresidual), writes(op.din),
                          results(op.accumulate, op.dgamma, op.dbias), parameters(op.rows, op.width, op.accumulate));
  }
  static constexpr auto one_type(auto& op) { return std::tie(op.dout, op.sum, op.gamma, op.dresidual, op.din); }
};
using RmsNormBackward = RmsNormBackwardOf<View>;

// ---- matrix products ----------------------------------------------------------------------------------------------

enum class Epilogue : std::uint8_t {
  none,
  gelu,           // aux = x, out = gelu(x), x the product with its bias
  gelu_backward,  // out = x * gelu'(aux)
};

/// out[m, n] = op(a)[m, k] op(b)[k, n] + bias[n] + add[m, n], then the epilogue; accumulated into out when
/// `accumulate`. op transposes the stored matrix when transpose_a / transpose_b. bias and add are optional; add has
/// out's element type, does not overlap out, and requires Epilogue::none without `accumulate`. GELU is the tanh form.
/// bias_gradient [m] f32 (optional): the row sums of op(a), for a weight gradient with a = dy^T; accumulated into when
/// `accumulate`.
///
/// 8-bit factors are outputs of Quantise and are multiplied by a_scale and b_scale, both per tensor or both per block.
/// One is e4m3, the other e4m3 or e5m2; a is stored [m, k] and b [n, k] (not transpose_a, but transpose_b); m, n and k
/// are multiples of fp8_multiple, and k of mx_block with block scales; there is no bias_gradient. cuBLASLt multiplies
/// this form on every GPU from Ada on, with block scales from Blackwell on (its documentation, cublasLtMatmul(), "To
/// use FP8 kernels").
template <class T>
struct MatmulOf {
  T a = {}, b = {}, bias = {}, add = {}, aux = {}, out = {}, bias_gradient = {};
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false, accumulate = false;
  Epilogue epilogue = Epilogue::none;
  T a_scale = {}, b_scale = {};
  static constexpr std::string_view name = "matmul";
  static constexpr auto fields(auto& op) {
    return std::tuple_cat(reads(op.a, op.b, op.bias, op.add),
                          operands(op.epilogue == Epilogue::gelu ? Access::write : Access::read, op.aux),
                          results(op.accumulate, op.out, op.bias_gradient),
                          parameters(op.m, op.n, op.k, op.transpose_a, op.transpose_b, op.epilogue, op.accumulate),
                          optional(reads(op.a_scale, op.b_scale)));
  }
};
using Matmul = MatmulOf<View>;

/// Rows and columns of 8-bit matrices are multiples of this: tensor cores load 16 bytes at once.
inline constexpr std::int64_t fp8_multiple = 16;

/// out = in / scale in 8-bit floats, rounded to nearest; out_transposed = the same of in's transpose. Each output is
/// optional; both have one type, e4m3 or e5m2. in [rows, width], f32 or bf16; out [rows, width], out_transposed [width,
/// rows]. bias_gradient [width] f32 (optional): the column sums of `in`; accumulated into when `accumulate`.
///
/// A scale is the smallest power of two that brings the largest |in| that it covers into the format's range; 1 if all
/// are zero. If one of them is infinite or NaN, all become NaN. scale [1] f32 covers the whole tensor. With block
/// scales, each mx_block elements of a row have one: scale for `out`, [block_scales(rows, width)] e8m0, and
/// scale_transposed for out_transposed, [block_scales(width, rows)] e8m0, each present with its output, in the layout
/// of base/floats.h. No element saturates, as in Transformer Engine (common/util/ptx_arch_spec.cuh, float_to_e8m0) and
/// cuBLAS ("1D Block Quantization"); the MX specification rounds the exponent down instead. A scale is at least 2^-100.
template <class T>
struct QuantiseOf {
  T in = {}, out = {}, out_transposed = {}, scale = {}, bias_gradient = {};
  std::int64_t rows = 0, width = 0;
  bool accumulate = false;
  T scale_transposed = {};
  static constexpr std::string_view name = "quantise";
  static constexpr auto fields(auto& op) {
    return std::tuple_cat(reads(op.in), writes(op.out, op.out_transposed, op.scale),
                          results(op.accumulate, op.bias_gradient), parameters(op.rows, op.width, op.accumulate),
                          optional(writes(op.scale_transposed)));
  }
  static constexpr auto one_type(auto& op) { return std::tie(op.out, op.out_transposed); }
  const T& either() const { return out.present() ? out : out_transposed; }
  const T& either_scale() const { return scale.present() ? scale : scale_transposed; }
};
using Quantise = QuantiseOf<View>;

/// out = gelu(in), tanh form, elementwise.
template <class T>
struct GeluOf {
  T in = {}, out = {};
  static constexpr std::string_view name = "gelu";
  static constexpr auto fields(auto& op) { return std::tuple_cat(reads(op.in), writes(op.out)); }
  static constexpr auto one_type(auto& op) { return std::tie(op.in, op.out); }
};
using Gelu = GeluOf<View>;

/// data = data * gelu'(in), in place.
template <class T>
struct GeluBackwardOf {
  T in = {}, data = {};
  static constexpr std::string_view name = "gelu_backward";
  static constexpr auto fields(auto& op) { return std::tuple_cat(reads(op.in), updates(op.data)); }
  static constexpr auto one_type(auto& op) { return std::tie(op.in, op.data); }
};
using GeluBackward = GeluBackwardOf<View>;

/// out = silu(gate) * up, silu(x) = x / (1 + exp(-x)) (Shazeer 2020, arXiv 2002.05202). in [rows, 2 width]: every row
/// has its gate, then its up; out [rows, width].
template <class T>
struct SwiGluOf {
  T in = {}, out = {};
  std::int64_t rows = 0, width = 0;
  static constexpr std::string_view name = "swiglu";
  static constexpr auto fields(auto& op) {
    return std::tuple_cat(reads(op.in), writes(op.out), parameters(op.rows, op.width));
  }
  static constexpr auto one_type(auto& op) { return std::tie(op.in, op.out); }
};
using SwiGlu = SwiGluOf<View>;

/// din = d(out)/d(in)^T dout, of the same shapes.
template <class T>
struct SwiGluBackwardOf {
  T in = {}, dout = {}, din = {};
  std::int64_t rows = 0, width = 0;
  static constexpr std::string_view name = "swiglu_backward";
  static constexpr auto fields(auto& op) {
    return std::tuple_cat(reads(op.in, op.dout), writes(op.din), parameters(op.rows, op.width));
  }
  static constexpr auto one_type(auto& op) { return std::tie(op.in, op.dout, op.din); }
};
using SwiGluBackward = SwiGluBackwardOf<View>;

/// data[r] += bias over each row, in place.
template <class T>
struct BiasAddOf {
  T bias = {}, data = {};
  std::int64_t rows = 0, width = 0;
  static constexpr std::string_view name = "bias_add";
  static constexpr auto fields(auto& op) {
    return std::tuple_cat(reads(op.bias), updates(op.data), parameters(op.rows, op.width));
  }
  static constexpr auto one_type(auto& op) { return std::tie(op.bias, op.data); }
};
using BiasAdd = BiasAddOf<View>;

/// out[j] (+)= sum over rows of in[row, j]; out f32.
template <class T>
struct ColumnSumOf {
  T in = {}, out = {};
  std::int64_t rows = 0, width = 0;
  bool accumulate = false;
  static constexpr std::string_view name = "column_sum";
  static constexpr auto fields(auto& op) {
    return std::tuple_cat(reads(op.in), results(op.accumulate, op.out), parameters(op.rows, op.width, op.accumulate));
  }
};
using ColumnSum = ColumnSumOf<View>;

// ---- cross-entropy, whole and over shards of the vocabulary -------------------------------------------------------

/// Softmax cross-entropy with its gradient in place: loss[0] += loss_scale * sum over rows of -log p(label);
/// logits = gradient_scale * (softmax - onehot). logits [rows, vocab]; labels [rows] i32; loss [1] f32. scale [1] f32
/// (optional) multiplies both scales; with it, rows with a negative label have no loss and zero gradients.
/// gradient_factor [1] f32 (optional) multiplies gradient_scale alone.
template <class T>
struct CrossEntropyOf {
  T logits = {}, labels = {}, loss = {};
  std::int64_t rows = 0, vocab = 0;
  double loss_scale = 1, gradient_scale = 1;
  T scale = {}, gradient_factor = {};
  static constexpr std::string_view name = "cross_entropy";
  static constexpr auto fields(auto& op) {
    return std::tuple_cat(reads(op.labels), updates(op.logits, op.loss),
                          parameters(op.rows, op.vocab, op.loss_scale, op.gradient_scale),
                          optional(reads(op.scale, op.gradient_factor)));
  }
};
using CrossEntropy = CrossEntropyOf<View>;

/// CrossEntropy over a vocabulary shard has three local parts, with all-reduces of [rows] f32 between them. First:
/// maximum[r] = max of the row (then all-reduce max).
template <class T>
struct CrossEntropyMaximumOf {
  T logits = {}, maximum = {};
  std::int64_t rows = 0, vocab = 0;
  static constexpr std::string_view name = "cross_entropy_maximum";
  static constexpr auto fields(auto& op) {
    return std::tuple_cat(reads(op.logits), writes(op.maximum), parameters(op.rows, op.vocab));
  }
};
using CrossEntropyMaximum = CrossEntropyMaximumOf<View>;

/// Second: target[r] = logit of the label minus maximum (0 if another rank holds it), sum[r] = sum of exp(logit -
/// maximum) (then all-reduce sum of each).
template <class T>
struct CrossEntropySumsOf {
  T logits = {}, labels = {}, maximum = {}, target = {}, sum = {};
  std::int64_t rows = 0, vocab = 0;
  Shard shard = {};
  static constexpr std::string_view name = "cross_entropy_sums";
  static constexpr auto fields(auto& op) {
    return std::tuple_cat(reads(op.logits, op.labels, op.maximum), writes(op.target, op.sum),
                          parameters(op.rows, op.vocab, op.shard));
  }
};
using CrossEntropySums = CrossEntropySumsOf<View>;

/// Third: loss[0] += loss_scale * sum over rows of (log sum - target); logits = gradient_scale * (softmax - onehot).
/// scale and gradient_factor as in CrossEntropy.
template <class T>
struct CrossEntropyGradientOf {
  T logits = {}, labels = {}, maximum = {}, target = {}, sum = {}, loss = {};
  std::int64_t rows = 0, vocab = 0;
  Shard shard = {};
  double loss_scale = 1, gradient_scale = 1;
  T scale = {}, gradient_factor = {};
  static constexpr std::string_view name = "cross_entropy_gradient";
  static constexpr auto fields(auto& op) {
    return std::tuple_cat(reads(op.labels, op.maximum, op.target, op.sum), updates(op.logits, op.loss),
                          parameters(op.rows, op.vocab, op.shard, op.loss_scale, op.gradient_scale),
                          optional(reads(op.scale, op.gradient_factor)));
  }
};
using CrossEntropyGradient = CrossEntropyGradientOf<View>;

}  // namespace harness::program
