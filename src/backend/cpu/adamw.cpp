#include <cmath>

#include "backend/cpu/kernels.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/simd.h"

namespace harness::cpu {
namespace {

using simd::Vec;

struct Factors {
  float decay, beta1, beta2, step_size, root_correction, epsilon;
};

// One element or one vector of them; `root` is its square root.
template <class V, class Root>
HARNESS_INLINE void update(V& w, V& m, V& v, V g, const Factors& f, Root&& root) {
  w *= f.decay;
  m += (g - m) * (1 - f.beta1);
  v = v * f.beta2 + g * g * (1 - f.beta2);
  w -= f.step_size * m / (root(v) * f.root_correction + f.epsilon);
}

HARNESS_INLINE Vec root_of(Vec v) {
  Vec out;
  for (std::int64_t i = 0; i < simd::lanes; ++i) out[i] = std::sqrt(v[i]);
  return out;
}

template <class T>
void range(float* w, float* m, float* v, const float* g, T* weights, std::int64_t n, const Factors& f) {
  std::int64_t i = 0;
  for (; i + simd::lanes <= n; i += simd::lanes) {
    Vec x = simd::load(w + i), a = simd::load(m + i), b = simd::load(v + i);
    update(x, a, b, simd::load(g + i), f, root_of);
    simd::store(w + i, x);
    simd::store(m + i, a);
    simd::store(v + i, b);
    if (weights) simd::store(weights + i, x);
  }
  for (; i < n; ++i) {
    update(w[i], m[i], v[i], g[i], f, [](float x) { return std::sqrt(x); });
    if (weights) simd::store_one(weights + i, w[i]);
  }
}

}  // namespace

void run(const backend::Bound<program::AdamW>& op, const backend::KernelContext&) {
  const double step = static_cast<double>(op.counter.i32()[0]) + 1;
  const auto learning_rate = static_cast<double>(op.learning_rate.f32()[0]);
  const double correction1 = 1 - std::pow(op.beta1, step), correction2 = 1 - std::pow(op.beta2, step);
  const Factors f{static_cast<float>(1 - learning_rate * op.weight_decay),
                  static_cast<float>(op.beta1),
                  static_cast<float>(op.beta2),
                  static_cast<float>(learning_rate / correction1),
                  static_cast<float>(1 / std::sqrt(correction2)),
                  static_cast<float>(op.epsilon)};
  backend::with_type(op.weights ? op.weights.type : program::DType::f32, [&](auto tag) {
    using T = decltype(tag);
    parallel_ranges(op.master.count, elementwise_grain, [&](std::int64_t a, std::int64_t b, int) {
      range(op.master.f32() + a, op.moment1.f32() + a, op.moment2.f32() + a, op.gradient.f32() + a,
            op.weights ? op.weights.as<T>() + a : nullptr, b - a, f);
    });
  });
}

}  // namespace harness::cpu
