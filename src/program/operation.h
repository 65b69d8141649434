#pragma once

#include <compare>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "program/attention.h"
#include "program/compute.h"
#include "program/layout.h"
#include "program/optimizer.h"
#include "program/view.h"

namespace harness::program {

// The operation list. An operation is as coarse as the best fused kernel; `lower()` (program/program.h) splits those
// that a backend does not declare. All matrices are row-major and dense; "rows" are tokens, row = sequence index *
// sequence length + position. An operation is a template over the type of its operands: a Program holds LayerNorm =
// LayerNormOf<View>, a backend's kernel takes LayerNormOf<Tensor>, the same operation with addresses (backend/bound.h).
// fields() (program/view.h) lists every member once; one_type() lists the operands whose element types must agree.
// Absent operands are optional ones left out. To add an operation: docs/architecture.md.

// ---- communication --------------------------------------------------------------------------------------------------

// Every member of the group must call a collective; verify() checks this.

enum class Reduction : std::uint8_t { sum, max };

/// data = reduction of `in` over the group's members; without `in`, of data, in place.
template <class T>
struct AllReduceOf {
  GroupId group = 0;
  T data = {};
  Reduction reduction = Reduction::sum;
  T in = {};
  static constexpr std::string_view name = "all_reduce";
  static constexpr auto fields(auto& op) {
    return std::tuple_cat(reads(op.in), results(!op.in.present(), op.data), parameters(op.reduction, op.group));
  }
};
using AllReduce = AllReduceOf<View>;

/// out [members * in.count] = every member's `in`, in member order. `in` may be this rank's own part of `out`
/// (View::own_part).
template <class T>
struct AllGatherOf {
  GroupId group = 0;
  T in = {}, out = {};
  static constexpr std::string_view name = "all_gather";
  static constexpr auto fields(auto& op) { return std::tuple_cat(reads(op.in), writes(op.out), parameters(op.group)); }
};
using AllGather = AllGatherOf<View>;

/// out [in.count / members] = this member's part of the reduction of every member's `in`. `out` may be this rank's own
/// part of `in`.
template <class T>
struct ReduceScatterOf {
  GroupId group = 0;
  T in = {}, out = {};
  Reduction reduction = Reduction::sum;
  static constexpr std::string_view name = "reduce_scatter";
  static constexpr auto fields(auto& op) {
    return std::tuple_cat(reads(op.in), writes(op.out), parameters(op.reduction, op.group));
  }
};
using ReduceScatter = ReduceScatterOf<View>;

/// Part i of `in` goes to member i; part i of `out` comes from member i.
template <class T>
struct AllToAllOf {
  GroupId group = 0;
  T in = {}, out = {};
  static constexpr std::string_view name = "all_to_all";
  static constexpr auto fields(auto& op) { return std::tuple_cat(reads(op.in), writes(op.out), parameters(op.group)); }
};
using AllToAll = AllToAllOf<View>;

/// The rank `offset` places along `axis` from this one, wrapping at the ends.
struct Peer {
  Axis axis = Axis::pipeline;
  int offset = 0;
  static constexpr auto members(auto& p) { return std::tie(p.axis, p.offset); }
  bool operator==(const Peer&) const = default;
};

template <class T>
struct SendOf {
  Peer peer = {};
  T data = {};
  static constexpr std::string_view name = "send";
  static constexpr auto fields(auto& op) { return std::tuple_cat(reads(op.data), parameters(op.peer)); }
};
using Send = SendOf<View>;

template <class T>
struct ReceiveOf {
  Peer peer = {};
  T data = {};
  static constexpr std::string_view name = "receive";
  static constexpr auto fields(auto& op) { return std::tuple_cat(writes(op.data), parameters(op.peer)); }
};
using Receive = ReceiveOf<View>;

// ---- the operation --------------------------------------------------------------------------------------------------

using Action =
    std::variant<Fill, Initialize, Convert, Record, Embedding, EmbeddingBackward, ResidualAdd, LayerNorm,
                 LayerNormBackward, RmsNorm, RmsNormBackward, Matmul, Quantise, Gelu, GeluBackward, SwiGlu,
                 SwiGluBackward, BiasAdd, ColumnSum, Rope, Attention, AttentionBackward, CrossEntropy,
                 CrossEntropyMaximum, CrossEntropySums, CrossEntropyGradient, AdamW, CheckFinite, UpdateScale, TopK,
                 ScatterAdd, AllReduce, AllGather, ReduceScatter, AllToAll, Send, Receive>;

enum class Phase : std::uint8_t { setup, forward, backward, gradient_sync, optimizer, finish };
const char* name_of(Phase phase);

/// Place of an operation in a step: for people, the timeline and NVTX ranges. Never affects the computation.
struct Label {
  std::string_view what = "";  // a literal: "qkv", "projection", "grad_reduce"
  Phase phase = Phase::forward;
  std::int32_t micro_batch = -1;
  std::int32_t layer = -1;  // global layer number
  bool recomputed = false;  // for the backward pass: counts for HFU, not for MFU
  bool operator==(const Label&) const = default;
};

using StreamId = std::int32_t;
using OperationId = std::int32_t;

struct Operation {
  Action action;
  StreamId stream = 0;
  /// Earlier operations of the same list, on other streams, that must have completed. Order within a stream is
  /// implicit.
  std::vector<OperationId> waits;
  /// Communications next to each other on a stream with the same non-negative number start as one and progress
  /// together.
  std::int32_t fused_group = -1;
  Label label;
};

std::string_view name_of(const Action& action);
bool is_communication(const Action& action);
/// The group of a collective; -1 for anything else.
GroupId group_of(const Action& action);
/// Returns the peer of a send or receive, inside `action`; nullptr for anything else.
const Peer* peer_of(const Action& action);

/// Views that a communication reads and writes; both are the same view if it works in place or is a message.
struct Transferred {
  View in, out;
};
/// Returns absent views for a computation.
Transferred transferred_by(const Action& action);

/// Calls on_access(access, view) for every view of the action that is present.
template <class OnAccess>
void visit_accesses(const Action& action, OnAccess&& on_access) {
  const auto present = [&](Access access, const View& view) {
    if (view.present()) on_access(access, view);
  };
  std::visit([&](const auto& op) { each_field(op, present, [](const auto& /*parameter*/) {}); }, action);
}

/// Identifies who communicates: the members of a group's instance, or a sender and its receiver. The n-th communication
/// of each member belongs to their n-th meeting. The caller numbers the members: ranks, roles, classes of ranks.
struct Communicator {
  GroupId group = -1;          // -1: a message
  Axis axis = Axis::tensor;    // of a message
  int first = 0, second = -1;  // the group's first member; or the sender and its receiver
  /// Distance from the sender to the receiver along the axis, modulo its size and not negative: of two ranks, each is
  /// both the next and the previous one of the other.
  int offset = 0;
  auto operator<=>(const Communicator&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 misreads it
};

/// Returns the communicator of a communication of `self`. `partner`: the first member of its group, or the other end of
/// the message.
Communicator communicator_of(const Layout& layout, const Action& action, int self, int partner);

}  // namespace harness::program
