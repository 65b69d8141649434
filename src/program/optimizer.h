#pragma once

#include <cstdint>
#include <string_view>

#include "program/view.h"

namespace harness::program {

// Operations that a step applies to its gradients. Conventions: program/operation.h.

// ---- optimizer ------------------------------------------------------------------------------------------------------

/// AdamW (Loshchilov & Hutter 2019, as torch.optim.AdamW computes it) over flat f32 buffers; step number t = counter
/// + 1. weights (optional) receives the new master values in its own type. scale [1] f32 (optional) divides the
/// gradient. skip [1] f32 (optional): unless it is 0, nothing is changed.
template <class T>
struct AdamWOf {
  T master = {}, moment1 = {}, moment2 = {}, gradient = {}, weights = {}, counter = {}, learning_rate = {};
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, weight_decay = 0.1;
  T scale = {}, skip = {};
  static constexpr std::string_view name = "adamw";
  static constexpr auto fields(auto& op) {
    return std::tuple_cat(reads(op.gradient, op.counter, op.learning_rate), updates(op.master, op.moment1, op.moment2),
                          operands(op.skip.present() ? Access::update : Access::write, op.weights),
                          parameters(op.beta1, op.beta2, op.epsilon, op.weight_decay),
                          optional(reads(op.scale, op.skip)));
  }
};
using AdamW = AdamWOf<View>;

// ---- loss scaling ---------------------------------------------------------------------------------------------------

// Mixed precision in f16 multiplies the gradient of the loss by a scale, so that small gradients do not vanish, and
// skips updates whose gradients overflowed (Micikevicius et al. 2018, arXiv 1710.03740).

/// found_inf[0] = 1 if an element of `in` is infinite or NaN, else unchanged. in f32, found_inf [1] f32.
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

// ---- gradient compression -------------------------------------------------------------------------------------------

/// Top-k sparsification with error feedback (Stich, Cordonnier and Jaggi 2018, arXiv 1809.07599): residual += gradient;
/// then its k elements of largest magnitude move to values, by ascending index, and become 0 in residual. Ties go to
/// the lower index; NaN is larger than any number. gradient, residual [n] f32; values [k] f32 and indices [k] i32, k
/// from 1 to n.
template <class T>
struct TopKOf {
  T gradient = {}, residual = {}, values = {}, indices = {};
  static constexpr std::string_view name = "top_k";
  static constexpr auto fields(auto& op) {
    return std::tuple_cat(reads(op.gradient), updates(op.residual), writes(op.values, op.indices));
  }
};
using TopK = TopKOf<View>;

/// out = 0, then out[indices[j]] += values[j] in the order of j. values f32 and indices i32 have one size and consist
/// of `parts` equal parts; the indices of a part ascend, each less than out.count. out f32.
template <class T>
struct ScatterAddOf {
  T values = {}, indices = {}, out = {};
  std::int64_t parts = 1;
  static constexpr std::string_view name = "scatter_add";
  static constexpr auto fields(auto& op) {
    return std::tuple_cat(reads(op.values, op.indices), writes(op.out), parameters(op.parts));
  }
};
using ScatterAdd = ScatterAddOf<View>;

}  // namespace harness::program
