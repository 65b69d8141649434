#pragma once

#include <compare>
#include <string_view>
#include <tuple>

#include "program/view.h"

namespace harness::program {

// Attention and the rotary embedding of its queries and keys. Conventions: program/operation.h.

/// Rotary position embedding (Su et al. 2021, arXiv 2104.09864), in place. `heads` heads lie side by side from the
/// start of each row. In each, elements i and i + head_dim / 2 form a vector that is rotated by (row mod sequence) *
/// theta^(-2 i / head_dim); by the negative angle when `backward`, which gives the gradient. Rows begin `stride`
/// elements apart; the rest of a row is unchanged. position_ids [rows] i32 (optional) replace row mod sequence.
template <class T>
struct RopeOf {
  T data = {};
  std::int64_t rows = 0, stride = 0, heads = 0, head_dim = 0, sequence = 0;
  double theta = 10000;
  bool backward = false;
  T position_ids = {};
  static constexpr std::string_view name = "rope";
  static constexpr auto fields(auto& op) {
    return std::tuple_cat(updates(op.data),
                          parameters(op.rows, op.stride, op.heads, op.head_dim, op.sequence, op.theta, op.backward),
                          optional(reads(op.position_ids)));
  }
};
using Rope = RopeOf<View>;

/// Shape of an attention: q of sequence b, position i, head h starts at element (b * query_length + i) * query_stride +
/// h * head_dim of the view; k and v likewise, with key_length, key_stride and head h / group: `group` query heads
/// share one key/value head (Ainslie et al. 2023, arXiv 2305.13245). Packed QKV: q, k and v are views into one buffer
/// with stride (heads + 2 * kv_heads()) * head_dim. Causal: position i sees keys 0..i (both counted from the start).
struct AttentionShape {
  std::int64_t batch = 0, heads = 0, head_dim = 0;
  std::int64_t query_length = 0, key_length = 0, query_stride = 0, key_stride = 0;
  bool causal = true;
  std::int64_t group = 1;
  std::int64_t kv_heads() const { return heads / group; }
  static constexpr auto members(auto& s) {
    return std::tie(s.batch, s.heads, s.head_dim, s.query_length, s.key_length, s.query_stride, s.key_stride, s.causal,
                    s.group);
  }
  auto operator<=>(const AttentionShape&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 misreads it
};

/// out = softmax(q k^T / sqrt(head_dim)) v, out [batch * query_length, heads * head_dim] dense; stats [batch, heads,
/// query_length] f32 = log-sum-exp of the scaled scores. probabilities [batch, heads, query_length, key_length]
/// (optional): the softmax itself, 0 for masked keys. If present, the attention is unfused: two batched products and a
/// softmax between them, through memory.
///
/// position_ids [batch * query_length] i32 (optional; only for causal attention with as many keys as queries): a
/// sequence packs several documents. Position i has index position_ids[i] in its document and sees only the keys of
/// this document, i - position_ids[i] to i. documents: the maximum per sequence, padding counted as one; sizes the
/// kernels' tables. unseen: the share of the causal half of the square that this masks, averaged over the steps; the
/// FLOP counts leave it out.
template <class T>
struct AttentionOf {
  T q = {}, k = {}, v = {}, out = {}, stats = {};
  AttentionShape shape = {};
  T probabilities = {}, position_ids = {};
  std::int64_t documents = 0;
  double unseen = 0;
  static constexpr std::string_view name = "attention";
  static constexpr auto fields(auto& op) {
    return std::tuple_cat(reads(op.q, op.k, op.v), writes(op.out, op.stats, op.probabilities), parameters(op.shape),
                          optional(reads(op.position_ids)), optional(parameters(op.documents, op.unseen)));
  }
  static constexpr auto one_type(auto& op) { return std::tie(op.q, op.k, op.v, op.out, op.probabilities); }
};
using Attention = AttentionOf<View>;

/// dq, dk, dv have the strides of q, k, v; they are accumulated into when `accumulate`. stats and out may come from a
/// larger attention, with k and v covering part of its keys. probabilities (optional): as the forward pass kept them;
/// if absent, they are recomputed from stats. position_ids, documents and unseen as in Attention.
template <class T>
struct AttentionBackwardOf {
  T q = {}, k = {}, v = {}, out = {}, stats = {}, dout = {}, dq = {}, dk = {}, dv = {};
  AttentionShape shape = {};
  bool accumulate = false;
  T probabilities = {}, position_ids = {};
  std::int64_t documents = 0;
  double unseen = 0;
  static constexpr std::string_view name = "attention_backward";
  static constexpr auto fields(auto& op) {
    return std::tuple_cat(reads(op.q, op.k, op.v, op.out, op.stats, op.dout, op.probabilities),
                          results(op.accumulate, op.dq, op.dk, op.dv), parameters(op.accumulate, op.shape),
                          optional(reads(op.position_ids)), optional(parameters(op.documents, op.unseen)));
  }
  static constexpr auto one_type(auto& op) {
    return std::tie(op.q, op.k, op.v, op.out, op.dout, op.dq, op.dk, op.dv, op.probabilities);
  }
};
using AttentionBackward = AttentionBackwardOf<View>;

}  // namespace harness::program
