#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "backend/cpu/kernels.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/simd.h"

namespace harness::cpu {
namespace {

using simd::get;
using simd::over;
using simd::put;
using simd::Vec;

// GELU in its tanh form is x * s(2u) with the logistic function s and u = sqrt(2/pi) (x + 0.044715 x^3), since
// (1 + tanh u) / 2 = s(2u).
constexpr float two_root = 1.5957691216057308f, cubic = 0.044715f;

HARNESS_INLINE Vec logistic_of_gelu(Vec x) {
  const Vec u2 = (x + cubic * (x * x * x)) * two_root;
  return 1.0f / (1.0f + simd::exp(-u2));
}

}  // namespace

void run(const backend::Bound<program::Fill>& op, const backend::KernelContext&) {
  const backend::Tensor& out = op.out;
  if (out.type == program::DType::i32) {
    std::fill_n(out.as<std::int32_t>(), out.count, static_cast<std::int32_t>(op.value));
    return;
  }
  backend::with_type(out.type, [&](auto tag) {
    using T = decltype(tag);
    T* to = out.as<T>();
    parallel_ranges(out.count, 4 * elementwise_grain, [&](std::int64_t first, std::int64_t last, int) {
      const Vec v = simd::splat(static_cast<float>(op.value));
      over(first, last, [&](std::int64_t i, std::int64_t n) { put(to + i, v, n); });
    });
  });
}

void run(const backend::Bound<program::Convert>& op, const backend::KernelContext&) {
  const backend::Tensor &in = op.in, &out = op.out;
  if (in.type == out.type) {
    parallel_ranges(out.count, 4 * elementwise_grain, [&](std::int64_t first, std::int64_t last, int) {
      const std::int64_t size = program::size_of(out.type);
      std::copy(in.as<char>() + first * size, in.as<char>() + last * size, out.as<char>() + first * size);
    });
    return;
  }
  backend::with_type(in.type, [&](auto from_tag) {
    backend::with_type(out.type, [&](auto to_tag) {
      const auto* from = in.as<const decltype(from_tag)>();
      auto* to = out.as<decltype(to_tag)>();
      parallel_ranges(out.count, elementwise_grain, [&](std::int64_t first, std::int64_t last, int) {
        over(first, last, [&](std::int64_t i, std::int64_t n) { put(to + i, get(from + i, n), n); });
      });
    });
  });
}

void run(const backend::Bound<program::Gelu>& op, const backend::KernelContext&) {
  backend::with_type(op.in.type, [&](auto tag) {
    using T = decltype(tag);
    const T* from = op.in.as<const T>();
    T* to = op.out.as<T>();
    parallel_ranges(op.in.count, elementwise_grain, [&](std::int64_t first, std::int64_t last, int) {
      over(first, last, [&](std::int64_t i, std::int64_t n) {
        const Vec x = get(from + i, n);
        put(to + i, x * logistic_of_gelu(x), n);
      });
    });
  });
}

void run(const backend::Bound<program::GeluBackward>& op, const backend::KernelContext&) {
  backend::with_type(op.in.type, [&](auto tag) {
    using T = decltype(tag);
    const T* from = op.in.as<const T>();
    T* to = op.data.as<T>();
    parallel_ranges(op.in.count, elementwise_grain, [&](std::int64_t first, std::int64_t last, int) {
      over(first, last, [&](std::int64_t i, std::int64_t n) {
        const Vec x = get(from + i, n);
        const Vec s = logistic_of_gelu(x);
        const Vec slope = s + x * s * (1.0f - s) * (two_root * (1.0f + (3 * cubic) * (x * x)));
        put(to + i, get(to + i, n) * slope, n);
      });
    });
  });
}

void run(const backend::Bound<program::SwiGlu>& op, const backend::KernelContext&) {
  const std::int64_t width = op.width;
  backend::with_type(op.in.type, [&](auto tag) {
    using T = decltype(tag);
    parallel_rows(op.rows, width, [&](std::int64_t r) {
      const T *gate = op.in.as<const T>() + 2 * r * width, *up = gate + width;
      T* to = op.out.as<T>() + r * width;
      over(0, width, [&](std::int64_t i, std::int64_t n) {
        const Vec g = get(gate + i, n);
        put(to + i, g / (1.0f + simd::exp(-g)) * get(up + i, n), n);
      });
    });
  });
}

void run(const backend::Bound<program::SwiGluBackward>& op, const backend::KernelContext&) {
  const std::int64_t width = op.width;
  backend::with_type(op.in.type, [&](auto tag) {
    using T = decltype(tag);
    parallel_rows(op.rows, width, [&](std::int64_t r) {
      const T *gate = op.in.as<const T>() + 2 * r * width, *up = gate + width;
      const T* dout = op.dout.as<const T>() + r * width;
      T *dgate = op.din.as<T>() + 2 * r * width, *dup = dgate + width;
      over(0, width, [&](std::int64_t i, std::int64_t n) {
        const Vec g = get(gate + i, n), s = 1.0f / (1.0f + simd::exp(-g)), d = get(dout + i, n);
        put(dgate + i, d * get(up + i, n) * (s * (1.0f + g * (1.0f - s))), n);
        put(dup + i, d * (g * s), n);
      });
    });
  });
}

void run(const backend::Bound<program::ResidualAdd>& op, const backend::KernelContext&) {
  const std::int64_t width = op.width;
  backend::with_type(op.out.type, [&](auto tag) {
    using T = decltype(tag);
    parallel_rows(op.rows, width, [&](std::int64_t r) {
      const T *x = op.in.as<const T>() + r * width, *b = op.bias.as<const T>();
      const T* other = op.residual ? op.residual.as<const T>() + r * width : nullptr;
      T* to = op.out.as<T>() + r * width;
      over(0, width, [&](std::int64_t i, std::int64_t n) {
        Vec v = get(x + i, n);
        if (b) v += get(b + i, n);
        if (other) v += get(other + i, n);
        put(to + i, v, n);
      });
    });
  });
}

void run(const backend::Bound<program::BiasAdd>& op, const backend::KernelContext& context) {
  run(
      backend::Bound<program::ResidualAdd>{
          .in = op.data, .bias = op.bias, .out = op.data, .rows = op.rows, .width = op.width},
      context);
}

void run(const backend::Bound<program::ColumnSum>& op, const backend::KernelContext&) {
  // Each thread sums columns of its own, so the result does not depend on their number. Rows are summed in blocks of 64
  // first: the rounding error grows with the square root of the number of terms.
  constexpr std::int64_t block = 64, columns = 4 * simd::lanes;
  const std::int64_t rows = op.rows, width = op.width;
  backend::with_type(op.in.type, [&](auto tag) {
    using T = decltype(tag);
    const T* from = op.in.as<const T>();
    float* to = op.out.f32();
    parallel_ranges(width, std::max<std::int64_t>(columns, elementwise_grain / std::max<std::int64_t>(rows, 1)),
                    [&](std::int64_t first, std::int64_t last, int) {
                      if (!op.accumulate) std::fill(to + first, to + last, 0.0f);
                      for (std::int64_t r0 = 0; r0 < rows; r0 += block) {
                        const std::int64_t r1 = std::min(rows, r0 + block);
                        std::int64_t c = first;
                        for (; c + columns <= last; c += columns) {
                          Vec s[4] = {};
                          for (std::int64_t r = r0; r < r1; ++r) {
                            for (int v = 0; v < 4; ++v) s[v] += simd::load(from + r * width + c + v * simd::lanes);
                          }
                          for (int v = 0; v < 4; ++v) {
                            float* p = to + c + v * simd::lanes;
                            simd::store(p, simd::load(p) + s[v]);
                          }
                        }
                        over(c, last, [&](std::int64_t i, std::int64_t n) {
                          Vec s{};
                          for (std::int64_t r = r0; r < r1; ++r) s += get(from + r * width + i, n);
                          cpu::simd::put(to + i, cpu::simd::get(to + i, n) + s, n);
                        });
                      }
                    });
  });
}

void reduce(backend::Tensor to, const void* a, const void* b, program::Reduction reduction) {
  backend::with_type(to.type, [&](auto tag) {
    using T = decltype(tag);
    const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
    T* out = to.as<T>();
    over(0, to.count, [&](std::int64_t i, std::int64_t n) {
      const Vec u = get(x + i, n), v = get(y + i, n);
      put(out + i, reduction == program::Reduction::sum ? u + v : simd::max(u, v), n);
    });
  });
}

void run(const backend::Bound<program::Record>& op, const backend::KernelContext&) {
  auto& steps = op.counter.as<std::int32_t>()[0];
  op.ring.f32()[steps % op.ring.count] = op.value.f32()[0];
  ++steps;
}

namespace {

// Rotates the pairs of elements i and i + half of one head.
template <class T>
HARNESS_INLINE void turn_head(T* head, const float* cosine, const float* sine, std::int64_t half) {
  over(0, half, [&](std::int64_t i, std::int64_t n) {
    const Vec a = get(head + i, n), b = get(head + half + i, n);
    const Vec c = cpu::simd::get(cosine + i, n), s = cpu::simd::get(sine + i, n);
    put(head + i, a * c - b * s, n);
    put(head + half + i, b * c + a * s, n);
  });
}

}  // namespace

std::int64_t scratch_floats(const program::Rope& op, int threads) {
  return op.head_dim * threads;
}

// Angles, sines and cosines are f32 for all data types: bf16 cannot tell neighbouring late positions apart. They are
// computed once per position for all sequences and heads, or once per row if rows give their positions.
void run(const backend::Bound<program::Rope>& op, const backend::KernelContext& context) {
  const std::int64_t half = op.head_dim / 2, every = op.position_ids ? op.rows : op.sequence;
  const std::int64_t positions = std::min(every, op.rows);
  const double step = -2 * std::log(op.theta) / static_cast<double>(op.head_dim);
  const std::int64_t of_position = (op.rows + every - 1) / every * op.heads * op.head_dim;
  backend::with_type(op.data.type, [&](auto tag) {
    using T = decltype(tag);
    parallel_ranges(positions, row_grain(of_position), [&](std::int64_t first, std::int64_t last, int thread) {
      float *cosine = context.scratch + thread * op.head_dim, *sine = cosine + half;
      for (std::int64_t p = first; p < last; ++p) {
        for (std::int64_t i = 0; i < half; ++i) {
          const auto frequency = static_cast<float>(std::exp(step * static_cast<double>(i)));
          const float angle = static_cast<float>(op.position_ids ? op.position_ids.i32()[p] : p) * frequency;
          cosine[i] = std::cos(angle);
          sine[i] = op.backward ? -std::sin(angle) : std::sin(angle);
        }
        for (std::int64_t row = p; row < op.rows; row += every) {
          T* heads = op.data.as<T>() + row * op.stride;
          for (std::int64_t h = 0; h < op.heads; ++h) turn_head(heads + h * op.head_dim, cosine, sine, half);
        }
      }
    });
  });
}

namespace {

struct Factors {
  float decay, beta1, beta2, step_size, root_correction, epsilon, of_gradient;
};

HARNESS_INLINE Vec root_of(Vec v) {
  Vec out;
  for (std::int64_t i = 0; i < simd::lanes; ++i) out[i] = std::sqrt(v[i]);
  return out;
}

template <class T>
void update(float* weight, float* moment1, float* moment2, const float* gradient, T* copy, std::int64_t count,
            const Factors& f) {
  over(0, count, [&](std::int64_t i, std::int64_t n) {
    const Vec g = simd::get(gradient + i, n) * f.of_gradient;
    Vec w = simd::get(weight + i, n), m = simd::get(moment1 + i, n), v = simd::get(moment2 + i, n);
    w *= f.decay;
    m += (g - m) * (1 - f.beta1);
    v = v * f.beta2 + g * g * (1 - f.beta2);
    w -= f.step_size * m / (root_of(v) * f.root_correction + f.epsilon);
    simd::put(weight + i, w, n);
    simd::put(moment1 + i, m, n);
    simd::put(moment2 + i, v, n);
    if (copy) put(copy + i, w, n);
  });
}

}  // namespace

void run(const backend::Bound<program::AdamW>& op, const backend::KernelContext&) {
  if (op.skip && op.skip.f32()[0] != 0) return;
  const double step = static_cast<double>(op.counter.i32()[0]) + 1;
  const auto learning_rate = static_cast<double>(op.learning_rate.f32()[0]);
  const double correction1 = 1 - std::pow(op.beta1, step), correction2 = 1 - std::pow(op.beta2, step);
  const Factors f{static_cast<float>(1 - learning_rate * op.weight_decay),
                  static_cast<float>(op.beta1),
                  static_cast<float>(op.beta2),
                  static_cast<float>(learning_rate / correction1),
                  static_cast<float>(1 / std::sqrt(correction2)),
                  static_cast<float>(op.epsilon),
                  op.scale ? 1 / op.scale.f32()[0] : 1.0f};
  backend::with_type(op.weights ? op.weights.type : program::DType::f32, [&](auto tag) {
    using T = decltype(tag);
    parallel_ranges(op.master.count, elementwise_grain, [&](std::int64_t a, std::int64_t b, int) {
      update(op.master.f32() + a, op.moment1.f32() + a, op.moment2.f32() + a, op.gradient.f32() + a,
             op.weights ? op.weights.as<T>() + a : nullptr, b - a, f);
    });
  });
}

void run(const backend::Bound<program::CheckFinite>& op, const backend::KernelContext&) {
  const float* from = op.in.f32();
  std::atomic<bool> finite = true;
  parallel_ranges(op.in.count, elementwise_grain, [&](std::int64_t first, std::int64_t last, int) {
    Vec zeros{};  // 0 times a finite number is 0; times infinity or NaN, it is NaN
    over(first, last, [&](std::int64_t i, std::int64_t n) { zeros += get(from + i, n) * 0.0f; });
    if (simd::sum(zeros) != 0) finite = false;
  });
  if (!finite) op.found_inf.f32()[0] = 1;
}

void run(const backend::Bound<program::UpdateScale>& op, const backend::KernelContext&) {
  float& scale = op.scale.f32()[0];
  const bool overflow = std::exchange(op.found_inf.f32()[0], 0.0f) != 0;
  auto &good_steps = op.good_steps.as<std::int32_t>()[0], &updates = op.updates.as<std::int32_t>()[0];
  if (overflow) {
    scale *= static_cast<float>(op.backoff);
    good_steps = 0;
    return;
  }
  ++updates;
  if (++good_steps < op.growth_interval) return;
  const float grown = scale * static_cast<float>(op.growth);
  if (std::isfinite(grown)) scale = grown;
  good_steps = 0;
}

}  // namespace harness::cpu
