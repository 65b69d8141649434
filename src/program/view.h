#pragma once

#include <cstdint>
#include <tuple>

#include "program/dtype.h"
#include "program/layout.h"

namespace harness::program {

using BufferId = std::int32_t;
using GroupId = std::int32_t;

/// `count` consecutive elements of one buffer. The element type is the buffer's. They begin at element `offset` on all
/// ranks, or, in one of several `parts` that lie one behind the other from there on, in the part of this rank: that of
/// its coordinate on the axis `follows`, along which there are as many ranks, or on each node as many.
struct View {
  BufferId buffer = -1;
  std::int64_t offset = 0;
  std::int64_t count = 0;
  std::int32_t parts = 1;
  Axis follows = Axis::tensor;  // where there are several parts

  bool present() const { return buffer >= 0; }
  /// Cuts a view that has one part.
  View part(std::int64_t first, std::int64_t n) const { return {buffer, offset + first, n}; }
  View own_part(Axis axis, std::int32_t n) const { return {buffer, offset, count / n, n, axis}; }
  /// The parts of all ranks together.
  View all_parts() const { return {buffer, offset, count * parts}; }
  /// Where it lies on the rank at these coordinates.
  View on(const Coordinates& at) const { return {buffer, offset + at[follows] % parts * count, count}; }
  bool operator==(const View&) const = default;
};

/// Whether they may have elements in common, on any ranks.
inline bool overlap(const View& a, const View& b) {
  const std::int64_t a_end = a.offset + a.count * a.parts, b_end = b.offset + b.count * b.parts;
  return a.buffer == b.buffer && a.offset < b_end && b.offset < a_end;
}

/// A vocabulary-parallel table: this rank holds rows [coordinate * rows, (coordinate + 1) * rows) of the whole.
struct Shard {
  Axis axis = Axis::tensor;
  std::int64_t rows = 0;
  static constexpr auto members(auto& s) { return std::tie(s.axis, s.rows); }
};

}  // namespace harness::program
