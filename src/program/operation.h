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

// The operation list. An operation is as coarse as the best fused kernel; `lower()` (program/program.h) replaces what a
// backend does not declare by finer ones. All matrices are row-major and dense; "rows" are tokens, row = sequence index
// * sequence length + position. An operation is a template over how it names its data: LayerNorm is LayerNormOf<View>,
// what a Program holds, and a backend's kernel takes LayerNormOf<Tensor>, the same operation with addresses
// (backend/bound.h). Its fields() (program/view.h) lists every member once; one_type() those operands whose element
// types must agree. Absent operands are optional ones left out. To add an operation: docs/architecture.md.

// ---- communication --------------------------------------------------------------------------------------------------

// A collective needs every member of its group to call it; verify() sees to that.

enum class Reduction : std::uint8_t { sum, max };

/// data = reduction over the group's members of `in`; without `in`, of data, in place.
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

/// The place of an operation in a step: for people, for the timeline, for NVTX ranges. Never decides what is computed.
struct Label {
  std::string_view what = "";  // a literal: "qkv", "projection", "grad_reduce"
  Phase phase = Phase::forward;
  std::int32_t micro_batch = -1;
  std::int32_t layer = -1;  // global layer number
  bool recomputed = false;  // done again for the backward pass: counts for HFU, not for MFU
};

using StreamId = std::int32_t;
using OperationId = std::int32_t;

struct Operation {
  Action action;
  StreamId stream = 0;
  /// Earlier operations of the same list, on other streams, that must have completed. The order within a stream needs
  /// no mention.
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
/// The other end of a send or receive, within `action`; nullptr for anything else.
const Peer* peer_of(const Action& action);

/// The memory of a communication: what it reads and what it writes, one view where it works in place or is a message.
struct Transferred {
  View in, out;
};
/// Absent views for a computation.
Transferred transferred_by(const Action& action);

/// Calls on_access(access, view) for every view of the action that is present.
template <class OnAccess>
void visit_accesses(const Action& action, OnAccess&& on_access) {
  const auto present = [&](Access access, const View& view) {
    if (view.present()) on_access(access, view);
  };
  std::visit([&](const auto& op) { each_field(op, present, [](const auto& /*parameter*/) {}); }, action);
}

/// Who meets whom: the members of an instance of a group, or a sender and its receiver. The n-th communication of each
/// member is part of their n-th meeting. Members are numbered as the caller does: ranks, roles, classes of ranks.
struct Communicator {
  GroupId group = -1;          // -1: a message
  Axis axis = Axis::tensor;    // of a message
  int first = 0, second = -1;  // the group's first member; or the sender and its receiver
  /// How far along the axis the receiver stands from the sender, from 0 on. Over the ends of an axis it is one way
  /// only: of two ranks, each is the other's next and previous one.
  int offset = 0;
  auto operator<=>(const Communicator&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 misreads it
};

/// The communicator of a communication of `self`. `partner`: the first member of its group, or the other end of the
/// message.
Communicator communicator_of(const Layout& layout, const Action& action, int self, int partner);

}  // namespace harness::program
