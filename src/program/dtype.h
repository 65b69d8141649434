#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace harness::program {

/// The type of a buffer's elements.
enum class DType : std::uint8_t { f32, bf16, i32, f16 };

/// The facts of an element type that all users need. Each library's name for it stands beside the calls, by a
/// switch without a default, so that a type without a word there does not compile.
struct DTypeRow {
  DType type;
  std::string_view name;  // in listings, messages and keys
  std::int64_t bytes;     // of one element
  int mantissa_bits;      // stored ones; 0: not a floating-point type
};
inline constexpr std::array<DTypeRow, 4> dtype_table{{
    {DType::f32, "f32", 4, 23},
    {DType::bf16, "bf16", 2, 7},
    {DType::i32, "i32", 4, 0},
    {DType::f16, "f16", 2, 10},
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

static_assert(
    [] {
      for (std::size_t i = 0; i < dtype_table.size(); ++i) {
        if (static_cast<std::size_t>(dtype_table[i].type) != i) return false;
      }
      return true;
    }(),
    "the rows stand in the order of DType");

}  // namespace harness::program
