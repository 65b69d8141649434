#pragma once

#include <string_view>

#include "program/view.h"

namespace harness {

// The communicating half of the operation list; its conventions stand in program/operation.h. A collective needs every
// member of its group to call it; verify() sees to that.

enum class Reduction : std::uint8_t { sum, max };

/// data = reduction over the group's members of `in`; without `in`, of data, in place.
struct AllReduce {
  GroupId group = 0;
  View data;
  Reduction reduction = Reduction::sum;
  View in = {};
  static constexpr std::string_view name = "all_reduce";
  void accesses(auto& visit) const {
    visit.read(in);
    in.present() ? visit.write(data) : visit.update(data);
  }
};

/// out [members * in.count] = every member's `in`, in member order. `in` may be this rank's own part of `out`.
struct AllGather {
  GroupId group = 0;
  View in, out;
  static constexpr std::string_view name = "all_gather";
  void accesses(auto& visit) const {
    visit.read(in);
    visit.write(out);
  }
};

/// out [in.count / members] = this member's part of the reduction of every member's `in`.
struct ReduceScatter {
  GroupId group = 0;
  View in, out;
  Reduction reduction = Reduction::sum;
  static constexpr std::string_view name = "reduce_scatter";
  void accesses(auto& visit) const {
    visit.read(in);
    visit.write(out);
  }
};

/// data = data of member `root` (an index into the group's members).
struct Broadcast {
  GroupId group = 0;
  View data;
  int root = 0;
  static constexpr std::string_view name = "broadcast";
  void accesses(auto& visit) const { visit.update(data); }
};

/// Part i of `in` goes to member i; part i of `out` comes from member i.
struct AllToAll {
  GroupId group = 0;
  View in, out;
  static constexpr std::string_view name = "all_to_all";
  void accesses(auto& visit) const {
    visit.read(in);
    visit.write(out);
  }
};

/// The rank `offset` places along `axis` from this one, wrapping at the ends.
struct Peer {
  Axis axis = Axis::pipeline;
  int offset = 0;
  bool operator==(const Peer&) const = default;
};

struct Send {
  Peer peer;
  View data;
  static constexpr std::string_view name = "send";
  void accesses(auto& visit) const { visit.read(data); }
};

struct Receive {
  Peer peer;
  View data;
  static constexpr std::string_view name = "receive";
  void accesses(auto& visit) const { visit.write(data); }
};

}  // namespace harness
