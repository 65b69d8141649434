#pragma once

#include <array>
#include <compare>
#include <map>
#include <span>
#include <string>

#include "program/layout.h"
#include "program/operation.h"

namespace harness::program {

// How the groups of a job spread over nodes. node_of[rank]: for every rank of the layout, or of more; nodes are
// numbered in any way.

/// By node: how many of these ranks it has.
std::map<int, int> ranks_by_node(std::span<const int> ranks, std::span<const int> node_of);

/// Where the members of one instance of a group stand.
struct Spread {
  int ranks = 1, nodes = 1;
  int most_on_a_node = 1;
  int instances_on_a_node = 1;                      // of the group, that leave a node at once and share its network
  auto operator<=>(const Spread&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 misreads it
};
/// `rank`: a member of the instance.
Spread spread_of(const Group& group, const Layout& layout, int rank, std::span<const int> node_of);

/// How many nodes the groups along each axis span: the ranks that differ along this axis alone, the group that spans
/// most. 0: nobody stands on the axis beside another.
struct Spans {
  std::array<int, axis_count> nodes{};
  int embedding = 0;  // of the first and the last pipeline stage, where these share a tied embedding
  int operator[](Axis axis) const { return nodes[static_cast<std::size_t>(axis)]; }
  /// "tensor 1, data 2, embedding 2": of visible_axes; "" where no rank has another beside it.
  std::string text() const;
};

/// Layout::replicas_of_node of ranks on these nodes.
int replicas_of_node(const Layout& layout, std::span<const int> node_of);

/// Whether a communication of this rank goes beyond its node.
bool leaves_node(const Layout& layout, std::span<const Group> groups, int rank, const Action& action,
                 std::span<const int> node_of);

/// By the coordinates of the ranks. `tied`: the ends of the pipeline share an embedding.
Spans spans_of(std::span<const Coordinates> at, std::span<const int> node_of, bool tied);
/// By the coordinates that the layout gives them.
Spans spans_of(const Layout& layout, std::span<const int> node_of, bool tied);

}  // namespace harness::program
