#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

namespace harness::program {

// The field list of an operation: fields(op) names every member once, as an operand that is read, written or updated or
// as a parameter. What an operation touches, what its line in a listing says and what a backend's kernel gets all
// follow from this one list.

enum class Access : std::uint8_t {
  read,
  write,   // the old value is not needed
  update,  // the old value is read and replaced
};

template <class T>
struct Operand {
  Access access;
  T& data;
};
template <class T>
struct Parameter {
  T& value;
};
/// An operand or a parameter that joined an operation later. Absent, or T{}, it leaves no trace in listings and hashes,
/// so a Program without it keeps the hash that it had before.
template <class T>
struct OptionalOperand {
  Access access;
  T& data;
  bool stands() const { return data.present(); }
};
template <class T>
struct OptionalParameter {
  T& value;
  bool stands() const { return value != T{}; }
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
/// Added to when `accumulate`, else replaced.
template <class... T>
constexpr auto results(bool accumulate, T&... data) {
  return operands(accumulate ? Access::update : Access::write, data...);
}
template <class... T>
constexpr auto parameters(T&... value) {
  return std::tuple<Parameter<T>...>{Parameter<T>{value}...};
}
template <class... T>
constexpr auto optional_reads(T&... data) {
  return std::tuple<OptionalOperand<T>...>{OptionalOperand<T>{Access::read, data}...};
}
template <class T>
constexpr auto optional_write(T& data) {
  return std::tuple<OptionalOperand<T>>{OptionalOperand<T>{Access::write, data}};
}
template <class T>
constexpr auto optional_parameter(T& value) {
  return std::tuple<OptionalParameter<T>>{OptionalParameter<T>{value}};
}

// A parameter that is a struct of several values has members(): all of them, once.

/// Stands for a value of any type, where only its place counts.
struct AnyValue {
  template <class T>
  constexpr operator T() const;
};
/// How many values initialise an aggregate.
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
    if constexpr (requires { field.stands(); }) {
      if (!field.stands()) return;
    }
    if constexpr (requires { field.access; }) {
      on_operand(field.access, field.data);
    } else {
      on_parameter(field.value);
    }
  };
  std::apply([&](const auto&... field) { (visit(field), ...); }, Op::fields(op));
}

/// An operation with operands of type To instead: place(operand) for each of them, parameters as they are.
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
