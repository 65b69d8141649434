#pragma once

#include <string_view>
#include <tuple>

#include "program/field.h"
#include "program/view.h"

namespace harness::program {

// The communicating half of the operation list; its conventions stand in program/operation.h. A collective needs every
// member of its group to call it; verify() sees to that.

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

}  // namespace harness::program
