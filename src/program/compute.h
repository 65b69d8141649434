#pragma once

#include <string_view>

#include "program/view.h"

namespace harness {

// The computing half of the operation list; its conventions stand in program/operation.h.

// ---- filling and moving -----------------------------------------------------------------------------------------

/// out[i] = value.
struct Fill {
  View out;
  double value = 0;
  static constexpr std::string_view name = "fill";
  void accesses(auto& visit) const { visit.write(out); }
};

/// Fills one parameter with numbers that depend on (seed, global index) alone. The local tensor is the slice
/// [:, c * part : (c + 1) * part, :] of a global tensor [outer, full, inner], c the coordinate on `axis`; element
/// (i, j, k) has global index first_index + (i * full + j) * inner + k and value mean + deviation * normal(index).
struct Initialize {
  View out;
  std::int64_t first_index = 0;
  Axis axis = Axis::tensor;
  std::int64_t outer = 1, full = 1, part = 1, inner = 1;
  double mean = 0, deviation = 0;
  static constexpr std::string_view name = "initialize";
  void accesses(auto& visit) const { visit.write(out); }
};

/// out = in, converted to out's element type.
struct Convert {
  View in, out;
  static constexpr std::string_view name = "convert";
  void accesses(auto& visit) const {
    visit.read(in);
    visit.write(out);
  }
};

/// ring[counter mod ring.count] = value[0]; counter += 1. Ends a step: the counter is the number of finished steps.
struct Record {
  View value, ring, counter;
  static constexpr std::string_view name = "record";
  void accesses(auto& visit) const {
    visit.read(value);
    visit.update(ring);
    visit.update(counter);
  }
};

// ---- embedding --------------------------------------------------------------------------------------------------

/// out[t] = words[tokens[t] - first] (0 if another rank holds that row) + positions[t mod sequence] (on coordinate 0 of
/// the shard's axis only, so that the sum over the axis is the embedding).
/// tokens [rows], words [shard.rows, width], positions [sequence, width], out [rows, width].
struct Embedding {
  View tokens, words, positions, out;
  std::int64_t rows = 0, width = 0, sequence = 0;
  Shard shard;
  static constexpr std::string_view name = "embedding";
  void accesses(auto& visit) const {
    visit.read(tokens);
    visit.read(words);
    visit.read(positions);
    visit.write(out);
  }
};

/// dwords[tokens[t] - first] += dout[t] for the rows this rank holds; dpositions[t mod sequence] (+)= dout[t].
/// dwords is always added to; dpositions is added to when accumulate_positions, else replaced.
struct EmbeddingBackward {
  View tokens, dout, dwords, dpositions;
  std::int64_t rows = 0, width = 0, sequence = 0;
  Shard shard;
  bool accumulate_positions = false;
  static constexpr std::string_view name = "embedding_backward";
  void accesses(auto& visit) const {
    visit.read(tokens);
    visit.read(dout);
    visit.update(dwords);
    accumulate_positions ? visit.update(dpositions) : visit.write(dpositions);
  }
};

// ---- residual stream and layer norm -------------------------------------------------------------------------------

/// out = in + bias (broadcast over rows) + residual.
struct ResidualAdd {
  View in, bias, residual, out;
  std::int64_t rows = 0, width = 0;
  static constexpr std::string_view name = "residual_add";
  void accesses(auto& visit) const {
    visit.read(in);
    visit.read(bias);
    visit.read(residual);
    visit.write(out);
  }
};

/// sum = in + bias + residual (each of the two optional; with neither, `sum` is absent and in itself is normalised);
/// out = (sum - mean) * rstd * gamma + beta, over each row. mean, rstd [rows] f32.
struct LayerNorm {
  View in, bias, residual, gamma, beta, sum, out, mean, rstd;
  std::int64_t rows = 0, width = 0;
  double epsilon = 1e-5;
  static constexpr std::string_view name = "layer_norm";
  void accesses(auto& visit) const {
    visit.read(in);
    visit.read(bias);
    visit.read(residual);
    visit.read(gamma);
    visit.read(beta);
    visit.write(sum);
    visit.write(out);
    visit.write(mean);
    visit.write(rstd);
  }
};

/// din = d(out)/d(sum)^T dout + dresidual (optional: the gradient that reaches `sum` past the norm).
/// dgamma, dbeta and dbias (optional; the column sum of din) are f32 and added to when `accumulate`, else replaced.
/// `sum` is the tensor the forward pass normalised.
struct LayerNormBackward {
  View dout, sum, gamma, mean, rstd, dresidual, din, dgamma, dbeta, dbias;
  std::int64_t rows = 0, width = 0;
  bool accumulate = false;
  static constexpr std::string_view name = "layer_norm_backward";
  void accesses(auto& visit) const {
    for (const View& v : {dout, sum, gamma, mean, rstd, dresidual}) visit.read(v);
    visit.write(din);
    for (const View& v : {dgamma, dbeta, dbias}) accumulate ? visit.update(v) : visit.write(v);
  }
};

// ---- matrix products ----------------------------------------------------------------------------------------------

enum class Epilogue : std::uint8_t {
  none,
  gelu,           // aux = x, out = gelu(x), x the product with its bias
  gelu_backward,  // out = x * gelu'(aux)
};

/// out[m, n] = op(a)[m, k] op(b)[k, n] + bias[n], then the epilogue; added to out when `accumulate`. op transposes the
/// stored matrix when transpose_a / transpose_b. GELU is the tanh form. bias_gradient [m] f32 (optional): the row sums
/// of op(a), as a weight gradient a = dy^T needs them; added to when `accumulate`.
struct Matmul {
  View a, b, bias, aux, out, bias_gradient;
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false, accumulate = false;
  Epilogue epilogue = Epilogue::none;
  static constexpr std::string_view name = "matmul";
  void accesses(auto& visit) const {
    visit.read(a);
    visit.read(b);
    visit.read(bias);
    epilogue == Epilogue::gelu ? visit.write(aux) : visit.read(aux);
    accumulate ? visit.update(out) : visit.write(out);
    accumulate ? visit.update(bias_gradient) : visit.write(bias_gradient);
  }
};

/// out = gelu(in), tanh form, elementwise.
struct Gelu {
  View in, out;
  static constexpr std::string_view name = "gelu";
  void accesses(auto& visit) const {
    visit.read(in);
    visit.write(out);
  }
};

/// data = data * gelu'(in), in place.
struct GeluBackward {
  View in, data;
  static constexpr std::string_view name = "gelu_backward";
  void accesses(auto& visit) const {
    visit.read(in);
    visit.update(data);
  }
};

/// data[r] += bias over each row, in place.
struct BiasAdd {
  View bias, data;
  std::int64_t rows = 0, width = 0;
  static constexpr std::string_view name = "bias_add";
  void accesses(auto& visit) const {
    visit.read(bias);
    visit.update(data);
  }
};

/// out[j] (+)= sum over rows of in[row, j]; out f32.
struct ColumnSum {
  View in, out;
  std::int64_t rows = 0, width = 0;
  bool accumulate = false;
  static constexpr std::string_view name = "column_sum";
  void accesses(auto& visit) const {
    visit.read(in);
    accumulate ? visit.update(out) : visit.write(out);
  }
};

// ---- attention ------------------------------------------------------------------------------------------------------

/// Shape of an attention: q of sequence b, position i, head h starts at element (b * query_length + i) * query_stride +
/// h * head_dim of the view; k and v likewise with key_length and key_stride. Packed QKV is q, k, v views into one
/// buffer with stride 3 * heads * head_dim. Causal: position i sees keys 0..i (both counted from the start).
struct AttentionShape {
  std::int64_t batch = 0, heads = 0, head_dim = 0;
  std::int64_t query_length = 0, key_length = 0, query_stride = 0, key_stride = 0;
  bool causal = true;
};

/// out = softmax(q k^T / sqrt(head_dim)) v, out [batch * query_length, heads * head_dim] dense; stats [batch, heads,
/// query_length] f32 = log of the sum of exponentials of the scaled scores.
struct Attention {
  View q, k, v, out, stats;
  AttentionShape shape;
  static constexpr std::string_view name = "attention";
  void accesses(auto& visit) const {
    visit.read(q);
    visit.read(k);
    visit.read(v);
    visit.write(out);
    visit.write(stats);
  }
};

/// Joins two attentions over disjoint keys: (out, stats) becomes the attention over the union.
struct AttentionMerge {
  View part_out, part_stats, out, stats;
  AttentionShape shape;
  static constexpr std::string_view name = "attention_merge";
  void accesses(auto& visit) const {
    visit.read(part_out);
    visit.read(part_stats);
    visit.update(out);
    visit.update(stats);
  }
};

/// dq, dk, dv in the strides of q, k, v; added to when `accumulate`. stats and out may be those of a larger attention
/// of which k, v are a part of the keys.
struct AttentionBackward {
  View q, k, v, out, stats, dout, dq, dk, dv;
  AttentionShape shape;
  bool accumulate = false;
  static constexpr std::string_view name = "attention_backward";
  void accesses(auto& visit) const {
    for (const View& x : {q, k, v, out, stats, dout}) visit.read(x);
    for (const View& x : {dq, dk, dv}) accumulate ? visit.update(x) : visit.write(x);
  }
};

// ---- loss -----------------------------------------------------------------------------------------------------------

/// Softmax cross-entropy with its gradient in place: loss[0] += loss_scale * sum over rows of -log p(label);
/// logits = gradient_scale * (softmax - onehot). logits [rows, vocab]; labels [rows] i32; loss [1] f32.
struct CrossEntropy {
  View logits, labels, loss;
  std::int64_t rows = 0, vocab = 0;
  double loss_scale = 1, gradient_scale = 1;
  static constexpr std::string_view name = "cross_entropy";
  void accesses(auto& visit) const {
    visit.read(labels);
    visit.update(logits);
    visit.update(loss);
  }
};

/// The three local parts of the same over a vocabulary shard, with all-reduces of [rows] f32 between them:
/// maximum[r] = max of the row (then all-reduce max);
struct CrossEntropyMaximum {
  View logits, maximum;
  std::int64_t rows = 0, vocab = 0;
  static constexpr std::string_view name = "cross_entropy_maximum";
  void accesses(auto& visit) const {
    visit.read(logits);
    visit.write(maximum);
  }
};

/// target[r] = logit of the label minus maximum (0 if another rank holds it), sum[r] = sum of exp(logit - maximum)
/// (then all-reduce sum of each);
struct CrossEntropySums {
  View logits, labels, maximum, target, sum;
  std::int64_t rows = 0, vocab = 0;
  Shard shard;
  static constexpr std::string_view name = "cross_entropy_sums";
  void accesses(auto& visit) const {
    for (const View& v : {logits, labels, maximum}) visit.read(v);
    visit.write(target);
    visit.write(sum);
  }
};

/// loss[0] += loss_scale * sum over rows of (log sum - target); logits = gradient_scale * (softmax - onehot).
struct CrossEntropyGradient {
  View logits, labels, maximum, target, sum, loss;
  std::int64_t rows = 0, vocab = 0;
  Shard shard;
  double loss_scale = 1, gradient_scale = 1;
  static constexpr std::string_view name = "cross_entropy_gradient";
  void accesses(auto& visit) const {
    for (const View& v : {labels, maximum, target, sum}) visit.read(v);
    visit.update(logits);
    visit.update(loss);
  }
};

// ---- optimizer ------------------------------------------------------------------------------------------------------

/// AdamW (Loshchilov & Hutter 2019, as torch.optim.AdamW computes it) over flat f32 buffers; step number t = counter
/// + 1. weights (optional) receives the new master values in its own type.
struct AdamW {
  View master, moment1, moment2, gradient, weights, counter, learning_rate;
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, weight_decay = 0.1;
  static constexpr std::string_view name = "adamw";
  void accesses(auto& visit) const {
    for (const View& v : {gradient, counter, learning_rate}) visit.read(v);
    for (const View& v : {master, moment1, moment2}) visit.update(v);
    visit.write(weights);
  }
};

}  // namespace harness
