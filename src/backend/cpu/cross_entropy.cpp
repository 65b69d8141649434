#include <algorithm>
#include <cmath>

#include "backend/cpu/kernels.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/simd.h"

namespace harness::cpu {
namespace {

using simd::Vec;

constexpr std::int64_t block = 64 * simd::lanes;  // partial sums of exponentials: keeps rounding errors small

template <class T>
float row_maximum(const T* x, std::int64_t n) {
  Vec m[4] = {simd::splat(-INFINITY), simd::splat(-INFINITY), simd::splat(-INFINITY), simd::splat(-INFINITY)};
  std::int64_t i = 0;
  for (; i + 4 * simd::lanes <= n; i += 4 * simd::lanes) {
    for (int k = 0; k < 4; ++k) m[k] = simd::max(m[k], simd::load(x + i + k * simd::lanes));
  }
  for (; i + simd::lanes <= n; i += simd::lanes) m[0] = simd::max(m[0], simd::load(x + i));
  if (i < n) m[0] = simd::max(m[0], simd::load_tail(x + i, n - i, -INFINITY));
  return simd::largest(simd::max(simd::max(m[0], m[1]), simd::max(m[2], m[3])));
}

template <class T>
float sum_of_exponentials(const T* x, std::int64_t n, float maximum) {
  Vec total{};
  for (std::int64_t begin = 0; begin < n; begin += block) {
    const std::int64_t end = std::min(n, begin + block);
    Vec a{}, b{};
    std::int64_t i = begin;
    for (; i + 2 * simd::lanes <= end; i += 2 * simd::lanes) {
      a += simd::exp(simd::load(x + i) - maximum);
      b += simd::exp(simd::load(x + i + simd::lanes) - maximum);
    }
    for (; i + simd::lanes <= end; i += simd::lanes) a += simd::exp(simd::load(x + i) - maximum);
    if (i < end) a += simd::exp(simd::load_tail(x + i, end - i, -INFINITY) - maximum);
    total += a + b;
  }
  return simd::sum(total);
}

// x = scale * (softmax(x) - onehot(label)). A label outside [0, n), as in another vocabulary shard, has no one-hot
// term.
template <class T>
void write_gradient(T* x, std::int64_t n, std::int64_t label, float maximum, float sum, float scale) {
  const bool here = label >= 0 && label < n;
  const float at_label = here ? (std::exp(to_float(x[label]) - maximum) / sum - 1) * scale : 0;
  const float factor = scale / sum;
  std::int64_t i = 0;
  for (; i + simd::lanes <= n; i += simd::lanes) simd::store(x + i, simd::exp(simd::load(x + i) - maximum) * factor);
  if (i < n) simd::store_tail(x + i, simd::exp(simd::load_tail(x + i, n - i) - maximum) * factor, n - i);
  if (here) simd::store_one(x + label, at_label);
}

// The factor of both loss_scale and gradient_scale.
float scale_of(const auto& op) {
  return op.scale ? op.scale.f32()[0] : 1.0f;
}
float gradient_scale_of(const auto& op) {
  const float factor = op.gradient_factor ? op.gradient_factor.f32()[0] : 1.0f;
  return static_cast<float>(op.gradient_scale) * scale_of(op) * factor;
}
// Whether the loss excludes this row, as for padding.
bool is_left_out(const auto& op, std::int64_t row) {
  return op.scale && op.labels.i32()[row] < 0;
}

}  // namespace

std::int64_t scratch_floats(const program::CrossEntropy& op, int /*threads*/) {
  return op.rows;
}

void run(const backend::Bound<program::CrossEntropy>& op, const backend::KernelContext& context) {
  const std::int32_t* label = op.labels.i32();
  float* row_losses = context.scratch;
  const float scale = scale_of(op), gradient_scale = gradient_scale_of(op);
  backend::with_type(op.logits.type, [&](auto tag) {
    using T = decltype(tag);
    parallel_rows(op.rows, op.vocab, [&](std::int64_t r) {
      T* x = op.logits.as<T>() + r * op.vocab;
      if (is_left_out(op, r)) {
        row_losses[r] = 0;
        std::fill_n(x, op.vocab, T{});
        return;
      }
      const float maximum = row_maximum(x, op.vocab);
      const float sum = sum_of_exponentials(x, op.vocab, maximum);
      const std::int64_t l = label[r];
      // A label outside the vocabulary makes the loss NaN, which shows the error.
      const float target = l >= 0 && l < op.vocab ? to_float(x[l]) - maximum : NAN;
      row_losses[r] = std::log(sum) - target;
      write_gradient(x, op.vocab, l, maximum, sum, gradient_scale);
    });
  });
  double total = 0;
  for (std::int64_t r = 0; r < op.rows; ++r) total += row_losses[r];
  op.loss.f32()[0] += static_cast<float>(op.loss_scale * total) * scale;
}

void run(const backend::Bound<program::CrossEntropyMaximum>& op, const backend::KernelContext&) {
  backend::with_type(op.logits.type, [&](auto tag) {
    using T = decltype(tag);
    parallel_rows(op.rows, op.vocab, [&](std::int64_t r) {
      op.maximum.f32()[r] = row_maximum(op.logits.as<const T>() + r * op.vocab, op.vocab);
    });
  });
}

void run(const backend::Bound<program::CrossEntropySums>& op, const backend::KernelContext& context) {
  const std::int64_t first_here = backend::first_row(op.shard, context.at);
  backend::with_type(op.logits.type, [&](auto tag) {
    using T = decltype(tag);
    parallel_rows(op.rows, op.vocab, [&](std::int64_t r) {
      const T* x = op.logits.as<const T>() + r * op.vocab;
      const float m = op.maximum.f32()[r];
      const std::int64_t l = op.labels.i32()[r] - first_here;
      op.target.f32()[r] = l >= 0 && l < op.vocab ? to_float(x[l]) - m : 0;
      op.sum.f32()[r] = sum_of_exponentials(x, op.vocab, m);
    });
  });
}

void run(const backend::Bound<program::CrossEntropyGradient>& op, const backend::KernelContext& context) {
  const std::int64_t first_here = backend::first_row(op.shard, context.at);
  const float scale = scale_of(op), gradient_scale = gradient_scale_of(op);
  backend::with_type(op.logits.type, [&](auto tag) {
    using T = decltype(tag);
    parallel_rows(op.rows, op.vocab, [&](std::int64_t r) {
      T* x = op.logits.as<T>() + r * op.vocab;
      if (is_left_out(op, r)) {
        std::fill_n(x, op.vocab, T{});
        return;
      }
      write_gradient(x, op.vocab, op.labels.i32()[r] - first_here, op.maximum.f32()[r], op.sum.f32()[r],
                     gradient_scale);
    });
  });
  double total = 0;
  for (std::int64_t r = 0; r < op.rows; ++r) {
    if (is_left_out(op, r)) continue;
    total += static_cast<double>(std::log(op.sum.f32()[r])) - static_cast<double>(op.target.f32()[r]);
  }
  op.loss.f32()[0] += static_cast<float>(op.loss_scale * total) * scale;
}

}  // namespace harness::cpu
