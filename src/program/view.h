#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <tuple>

#include "program/layout.h"

namespace harness::program {

/// The type of a buffer's elements.
/// e4m3 and e5m2: 8-bit floats (base/floats.h), to be multiplied by the scale of their tensor or block. e8m0: the
/// scales of blocks.
enum class DType : std::uint8_t { f32, bf16, i32, f16, e4m3, e5m2, e8m0 };

/// The facts of an element type that all users need. Each library's name for it stands beside the calls, by a
/// switch without a default, so that a type without a word there does not compile.
struct DTypeRow {
  DType type;
  std::string_view name;  // in listings, messages and keys
  std::int64_t bytes;     // of one element
  int mantissa_bits;      // stored ones; 0: not a floating-point type
};
inline constexpr std::array<DTypeRow, 7> dtype_table{{
    {DType::f32, "f32", 4, 23},
    {DType::bf16, "bf16", 2, 7},
    {DType::i32, "i32", 4, 0},
    {DType::f16, "f16", 2, 10},
    {DType::e4m3, "e4m3", 1, 3},
    {DType::e5m2, "e5m2", 1, 2},
    {DType::e8m0, "e8m0", 1, 0},
}};

inline constexpr const DTypeRow& row_of(DType type) {
  return dtype_table[static_cast<std::size_t>(type)];
}
inline constexpr std::int64_t size_of(DType type) {
  return row_of(type).bytes;
}
inline constexpr std::string_view name_of(DType type) {
  return row_of(type).name;
}
inline constexpr bool is_fp8(DType type) {
  return type == DType::e4m3 || type == DType::e5m2;
}
/// Whether scales of this type stand for blocks (base/floats.h), each for its own; else one stands for a tensor.
inline constexpr bool are_of_blocks(DType scales) {
  return scales == DType::e8m0;
}

static_assert(
    [] {
      for (std::size_t i = 0; i < dtype_table.size(); ++i) {
        if (static_cast<std::size_t>(dtype_table[i].type) != i) return false;
      }
      return true;
    }(),
    "the rows stand in the order of DType");

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
