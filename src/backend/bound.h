#pragma once

#include "backend/tensor.h"
#include "program/operation.h"

namespace harness::backend {

// Operations whose views have become addresses: what kernels take. Bound<LayerNorm> is LayerNormOf<Tensor>.

template <class Op>
struct BoundType;
template <template <class> class Op>
struct BoundType<Op<program::View>> {
  using type = Op<Tensor>;
};
template <class Op>
using Bound = typename BoundType<Op>::type;

/// Facts that a kernel needs besides its operation.
struct KernelContext {
  program::Coordinates at = {};  // of this rank, for operations on a shard
  std::uint64_t seed = 1;        // of the run
  float* scratch = nullptr;      // as many floats as scratch_floats() of the operation says; free again when it is done
};

/// The number of the first row that this rank holds of a table shared out along an axis.
inline std::int64_t first_row(const program::Shard& shard, const program::Coordinates& at) {
  return at[shard.axis] * shard.rows;
}

/// Throws Error if operands that kernels compute with in one type have several.
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

/// The operation with tensor(view) for each view that is present. Throws Error if its types do not fit together.
template <class Op, class TensorOf>
Bound<Op> bind(const Op& op, TensorOf&& tensor) {
  const Bound<Op> bound =
      program::rebind<Tensor>(op, [&](const program::View& view) { return view.present() ? tensor(view) : Tensor{}; });
  require_one_type(bound);
  return bound;
}

}  // namespace harness::backend
