#pragma once

#include <compare>
#include <string_view>
#include <tuple>

#include "program/view.h"

namespace harness::program {

// Attention and what turns its queries and keys; the conventions stand in program/operation.h.

/// Rotary positions (Su et al. 2021, arXiv 2104.09864), in place: in each of `heads` heads that lie side by side from
/// the start of a row, elements i and i + head_dim / 2 are a vector that turns by (row mod sequence) * theta^(-2 i /
/// head_dim); by the negative angle when `backward`, which is the gradient. Rows begin `stride` elements apart; what
/// follows the heads in a row stays as it is. position_ids [rows] i32 (optional): they stand for row mod sequence.
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
                          optional_reads(op.position_ids));
  }
};
using Rope = RopeOf<View>;

/// Shape of an attention: q of sequence b, position i, head h starts at element (b * query_length + i) * query_stride +
/// h * head_dim of the view; k and v likewise with key_length and key_stride, and the head h / group: `group` heads of
/// queries share one of keys and values (Ainslie et al. 2023, arXiv 2305.13245). Packed QKV is q, k, v views into one
/// buffer with stride (heads + 2 * kv_heads()) * head_dim. Causal: position i sees keys 0..i (both counted from the
/// start).
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
/// query_length] f32 = log of the sum of exponentials of the scaled scores. probabilities [batch, heads, query_length,
/// key_length] (optional): the softmax itself, 0 where a key is not seen. With it the attention is unfused: two batched
/// products and a softmax between them, through memory.
///
/// position_ids [batch * query_length] i32 (optional; of causal attention with as many keys as queries): several
/// documents lie one behind the other in a sequence, and position i has number position_ids[i] of its document, whose
/// keys alone it sees: i - position_ids[i] to i. documents: the most that a sequence holds, padding counted as one;
/// kernels' tables have this size. unseen: the share of the causal half of the square that is then not seen, in the
/// mean over the steps; by it the FLOP are counted.
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
                          optional_reads(op.position_ids), optional_parameters(op.documents, op.unseen));
  }
  static constexpr auto one_type(auto& op) { return std::tie(op.q, op.k, op.v, op.out, op.probabilities); }
};
using Attention = AttentionOf<View>;

/// dq, dk, dv in the strides of q, k, v; added to when `accumulate`. stats and out may be those of a larger attention
/// of which k, v are a part of the keys. probabilities (optional): as the forward pass kept them; without, they are
/// computed again from stats. position_ids, documents and unseen as in Attention.
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
                          optional_reads(op.position_ids), optional_parameters(op.documents, op.unseen));
  }
  static constexpr auto one_type(auto& op) {
    return std::tie(op.q, op.k, op.v, op.out, op.dout, op.dq, op.dk, op.dv, op.probabilities);
  }
};
using AttentionBackward = AttentionBackwardOf<View>;

}  // namespace harness::program
