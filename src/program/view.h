#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>

#include "program/layout.h"

namespace harness::program {

/// Element type of a buffer.
/// e4m3 and e5m2: 8-bit floats (base/floats.h), multiplied by the scale of their tensor or block. e8m0: block scales.
enum class DType : std::uint8_t { f32, bf16, i32, f16, e4m3, e5m2, e8m0 };

/// Facts of an element type that all users need. Each library's own name for it stands beside the library's calls, in a
/// switch without a default, so that a missing type fails to compile.
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
  return *std::ranges::find(dtype_table, type, &DTypeRow::type);
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
/// Whether scales of this type are per block (base/floats.h); otherwise one scale covers a whole tensor.
inline constexpr bool are_of_blocks(DType scales) {
  return scales == DType::e8m0;
}

using BufferId = std::int32_t;
using GroupId = std::int32_t;

/// `count` consecutive elements of one buffer, of the buffer's element type. With one part, they begin at element
/// `offset` on all ranks. With several `parts`, which lie consecutively from there, they are this rank's part: that of
/// its coordinate on the axis `follows`. There are as many parts as ranks along this axis, or as ranks along it on each
/// node.
struct View {
  BufferId buffer = -1;
  std::int64_t offset = 0;
  std::int64_t count = 0;
  std::int32_t parts = 1;
  Axis follows = Axis::tensor;  // if there are several parts

  bool present() const { return buffer >= 0; }
  /// Returns `n` elements from `first` on. The view must have one part.
  View part(std::int64_t first, std::int64_t n) const { return {buffer, offset + first, n}; }
  View own_part(Axis axis, std::int32_t n) const { return {buffer, offset, count / n, n, axis}; }
  /// The parts of all ranks together.
  View all_parts() const { return {buffer, offset, count * parts}; }
  /// Returns the view's place on the rank at these coordinates.
  View on(const Coordinates& at) const { return {buffer, offset + at[follows] % parts * count, count}; }
  bool operator==(const View&) const = default;
};

/// Whether the views may have elements in common, on any ranks.
inline bool overlap(const View& a, const View& b) {
  const std::int64_t a_end = a.offset + a.count * a.parts, b_end = b.offset + b.count * b.parts;
  return a.buffer == b.buffer && a.offset < b_end && b.offset < a_end;
}

/// A vocabulary-parallel table: this rank holds rows [coordinate * rows, (coordinate + 1) * rows) of the whole.
struct Shard {
  Axis axis = Axis::tensor;
  std::int64_t rows = 0;
  static constexpr auto members(auto& s) { return std::tie(s.axis, s.rows); }
  bool operator==(const Shard&) const = default;
};

// ---- fields ---------------------------------------------------------------------------------------------------------

// The field list of an operation: fields(op) names every member once, as an operand that is read, written or updated,
// or as a parameter. The memory that an operation touches, its line in a listing and the arguments of a backend's
// kernel all follow from this list.

enum class Access : std::uint8_t {
  read,
  write,   // the old value is not needed
  update,  // the old value is read and replaced
};

// Optional operands and parameters were added to their operation later. If absent, or T{}, they leave no trace in
// listings and hashes, so a Program without them keeps its earlier hash.
template <class T>
struct Operand {
  Access access;
  T& data;
  bool optional = false;
  bool stands() const { return !optional || data.present(); }
};
template <class T>
struct Parameter {
  T& value;
  bool optional = false;
  bool stands() const { return !optional || value != T{}; }
};

template <class... T>
constexpr auto operands(Access access, T&... data) {
  return std::tuple<Operand<T>...>{Operand<T>{access, data}...};
}
template <class... T>
constexpr auto reads(T&... data) {
  return operands(Access::read, data...);
}
template <class... T>
constexpr auto writes(T&... data) {
  return operands(Access::write, data...);
}
template <class... T>
constexpr auto updates(T&... data) {
  return operands(Access::update, data...);
}
/// Accumulated into when `accumulate`, else replaced.
template <class... T>
constexpr auto results(bool accumulate, T&... data) {
  return operands(accumulate ? Access::update : Access::write, data...);
}
template <class... T>
constexpr auto parameters(T&... value) {
  return std::tuple<Parameter<T>...>{Parameter<T>{value}...};
}
template <class... Field>
constexpr auto optional(std::tuple<Field...> fields) {
  std::apply([](auto&... field) { ((field.optional = true), ...); }, fields);
  return fields;
}

// A parameter that is a struct has members(), which lists each of its values once.

/// Placeholder that converts to any type, for member_count().
struct AnyValue {
  template <class T>
  constexpr operator T() const;
};
/// Number of values that initialise an aggregate.
template <class T, class... Given>
consteval std::size_t member_count() {
  if constexpr (requires { T{Given{}..., AnyValue{}}; }) {
    return member_count<T, Given..., AnyValue>();
  } else {
    return sizeof...(Given);
  }
}
template <class T>
concept HasMembers = requires(const T& value) {
  T::members(value);
};

/// Calls visit(member) for each member of such a parameter.
template <HasMembers T, class Visit>
void each_member(const T& value, Visit&& visit) {
  const auto members = T::members(value);
  static_assert(std::tuple_size_v<decltype(members)> == member_count<T>(), "members() lacks one");
  std::apply([&](const auto&... member) { (visit(member), ...); }, members);
}

/// Calls on_operand(access, data) and on_parameter(value) for every field that stands, in the order of the list.
template <class Op, class OnOperand, class OnParameter>
void each_field(Op& op, OnOperand&& on_operand, OnParameter&& on_parameter) {
  const auto visit = [&]<class Field>(const Field& field) {
    if (!field.stands()) return;
    if constexpr (requires { field.access; }) {
      on_operand(field.access, field.data);
    } else {
      on_parameter(field.value);
    }
  };
  std::apply([&](const auto&... field) { (visit(field), ...); }, Op::fields(op));
}

/// Returns the operation with operands of type To: place(operand) for each of them, parameters unchanged.
template <class To, template <class> class Op, class From, class Place>
Op<To> rebind(const Op<From>& op, Place&& place) {
  Op<To> bound;
  const auto assign = [&](const auto& from, const auto& to) {
    if constexpr (requires { from.access; }) {
      to.data = place(from.data);
    } else {
      to.value = from.value;
    }
  };
  const auto source = Op<From>::fields(op);
  const auto target = Op<To>::fields(bound);
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (assign(std::get<i>(source), std::get<i>(target)), ...);
  }
  (std::make_index_sequence<std::tuple_size_v<decltype(source)>>{});
  return bound;
}

}  // namespace harness::program
