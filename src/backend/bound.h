#pragma once

#include "base/floats.h"
#include "base/text.h"
#include "program/operation.h"

namespace harness::backend {

/// A view resolved to an address in the backend's memory. An absent view has no data.
struct Tensor {
  void* data = nullptr;
  program::DType type = program::DType::f32;
  std::int64_t count = 0;

  bool present() const { return data != nullptr; }
  explicit operator bool() const { return present(); }
  std::int64_t bytes() const { return count * program::size_of(type); }
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  float* f32() const { return as<float>(); }
  const std::int32_t* i32() const { return as<const std::int32_t>(); }
};

/// Calls f with a float, bf16 or f16 (by value, as a tag) according to the type.
template <class F>
void with_type(program::DType type, F&& f) {
  switch (type) {
    case program::DType::f32:
      return f(float{});
    case program::DType::bf16:
      return f(bf16{});
    case program::DType::f16:
      return f(f16{});
    case program::DType::i32:
    case program::DType::e4m3:
    case program::DType::e5m2:
    case program::DType::e8m0:
      break;
  }
  throw Error("there is no arithmetic on i32 and 8-bit buffers");
}

/// `type`: e4m3 or e5m2.
inline const Fp8Format& fp8_format(program::DType type) {
  return type == program::DType::e4m3 ? e4m3_format : e5m2_format;
}

// Operations with addresses in place of views, as kernels take them. Bound<LayerNorm> is LayerNormOf<Tensor>.

template <class Op>
struct BoundType;
template <template <class> class Op>
struct BoundType<Op<program::View>> {
  using type = Op<Tensor>;
};
template <class Op>
using Bound = typename BoundType<Op>::type;

/// Arguments of a kernel besides its operation.
struct KernelContext {
  program::Coordinates at = {};  // of this rank, for operations on a shard
  std::uint64_t seed = 1;        // of the run
  float* scratch = nullptr;      // scratch_floats() floats of the operation; reusable once it is done
};

/// Returns the index of this rank's first row of a table sharded along an axis.
inline std::int64_t first_row(const program::Shard& shard, const program::Coordinates& at) {
  return at[shard.axis] * shard.rows;
}

/// Throws Error if operands that must share one element type do not.
template <class Op>
void require_one_type(const Op& bound) {
  if constexpr (requires { Op::one_type(bound); }) {
    const Tensor* first = nullptr;
    const auto check = [&](const Tensor& tensor) {
      if (!tensor.present()) return;
      if (first == nullptr) first = &tensor;
      if (tensor.type != first->type) {
        fail("{}: its tensors must have one element type; convert those that differ", Op::name);
      }
    };
    std::apply([&](const auto&... tensor) { (check(tensor), ...); }, Op::one_type(bound));
  }
}

/// Returns the operation with each present view replaced by tensor(view). Throws Error as require_one_type() does.
template <class Op, class TensorOf>
Bound<Op> bind(const Op& op, TensorOf&& tensor) {
  const Bound<Op> bound =
      program::rebind<Tensor>(op, [&](const program::View& view) { return view.present() ? tensor(view) : Tensor{}; });
  require_one_type(bound);
  return bound;
}

}  // namespace harness::backend
