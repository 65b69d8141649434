#pragma once

#include <cstdint>
#include <string_view>

#include "program/field.h"
#include "program/view.h"

namespace harness::program {

// Mixed precision in f16 multiplies the gradient of the loss by a scale, so that small gradients do not vanish, and
// leaves out updates whose gradients overflowed (Micikevicius et al. 2018, arXiv 1710.03740).

/// found_inf[0] = 1 if an element of `in` is infinite or NaN; otherwise found_inf stays. in f32, found_inf [1] f32.
template <class T>
struct CheckFiniteOf {
  T in = {}, found_inf = {};
  static constexpr std::string_view name = "check_finite";
  static constexpr auto fields(auto& op) { return std::tuple_cat(reads(op.in), updates(op.found_inf)); }
};
using CheckFinite = CheckFiniteOf<View>;

/// Ends a step with loss scaling, as torch.amp.GradScaler.update() does (PyTorch, aten/src/ATen/native/cuda/
/// AmpKernels.cu). After an overflow (found_inf[0] is not 0): scale *= backoff, good_steps = 0. Otherwise updates += 1
/// and good_steps += 1; at good_steps == growth_interval: scale *= growth, unless that is infinite, and good_steps = 0.
/// Then found_inf[0] = 0. found_inf, scale [1] f32; good_steps, updates [1] i32.
template <class T>
struct UpdateScaleOf {
  T found_inf = {}, scale = {}, good_steps = {}, updates = {};
  double growth = 2, backoff = 0.5;
  std::int64_t growth_interval = 2000;
  static constexpr std::string_view name = "update_scale";
  static constexpr auto fields(auto& op) {
    return std::tuple_cat(program::updates(op.found_inf, op.scale, op.good_steps, op.updates),
                          parameters(op.growth, op.backoff, op.growth_interval));
  }
};
using UpdateScale = UpdateScaleOf<View>;

}  // namespace harness::program
