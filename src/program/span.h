#pragma once

#include <array>
#include <span>
#include <string>

#include "program/layout.h"
#include "program/operation.h"

namespace harness::program {

/// How many nodes the groups along each axis span: the ranks that differ along this axis alone, the group that spans
/// most. 0: nobody stands on the axis beside another.
struct Spans {
  std::array<int, axis_count> nodes{};
  int embedding = 0;  // of the first and the last pipeline stage, where these share a tied embedding
  int operator[](Axis axis) const { return nodes[static_cast<std::size_t>(axis)]; }
  /// "tensor 1, data 2, embedding 2": of told_axes; "" where no rank has another beside it.
  std::string text() const;
};

/// Layout::replicas_of_node of ranks on these nodes: of the first ranks of a job, as many as the layout has.
int replicas_of_node(const Layout& layout, std::span<const int> node_of);

/// Whether a communication of this rank goes beyond its node.
bool leaves_node(const Layout& layout, std::span<const Group> groups, int rank, const Action& action,
                 std::span<const int> node_of);

/// Of ranks by their coordinates and their nodes, which are numbered in any way. Both lists are by rank; nodes of more
/// ranks than stand in the layout may follow. `tied`: the ends of the pipeline share an embedding.
Spans spans_of(std::span<const Coordinates> at, std::span<const int> node_of, bool tied);
/// Of the first ranks of a job, as many as the layout has.
Spans spans_of(const Layout& layout, std::span<const int> node_of, bool tied);

}  // namespace harness::program
