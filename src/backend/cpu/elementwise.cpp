#include <cmath>
#include <cstring>

#include "backend/cpu/kernels.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/simd.h"

namespace harness::cpu {
namespace {

using simd::get;
using simd::lanes;
using simd::over;
using simd::put;
using simd::splat;
using simd::Vec;

// GELU in its tanh form is x * s(2u) with the logistic function s and u = sqrt(2/pi) (x + 0.044715 x^3), since
// (1 + tanh u) / 2 = s(2u).
constexpr float two_root = 1.5957691216057308f, cubic = 0.044715f;

HARNESS_INLINE Vec logistic_of_gelu(Vec x) {
  const Vec u2 = (x + cubic * (x * x * x)) * two_root;
  return 1.0f / (1.0f + simd::exp(-u2));
}

}  // namespace

void fill(Tensor out, double value) {
  if (out.type == DType::i32) {
    std::fill_n(out.as<std::int32_t>(), out.count, static_cast<std::int32_t>(value));
    return;
  }
  with_type(out.type, [&](auto tag) {
    using T = decltype(tag);
    T* to = out.as<T>();
    parallel_ranges(out.count, 4 * elementwise_grain, [&](std::int64_t first, std::int64_t last, int) {
      const Vec v = splat(static_cast<float>(value));
      over(first, last, [&](std::int64_t i, std::int64_t n) { put(to + i, v, n); });
    });
  });
}

void convert(Tensor in, Tensor out) {
  if (in.type == out.type) {
    parallel_ranges(out.count, 4 * elementwise_grain, [&](std::int64_t first, std::int64_t last, int) {
      const auto size = static_cast<std::size_t>(size_of(out.type));
      std::memcpy(out.as<char>() + static_cast<std::size_t>(first) * size,
                  in.as<char>() + static_cast<std::size_t>(first) * size,
                  static_cast<std::size_t>(last - first) * size);
    });
    return;
  }
  with_type(in.type, [&](auto from_tag) {
    with_type(out.type, [&](auto to_tag) {
      const auto* from = in.as<const decltype(from_tag)>();
      auto* to = out.as<decltype(to_tag)>();
      parallel_ranges(out.count, elementwise_grain, [&](std::int64_t first, std::int64_t last, int) {
        over(first, last, [&](std::int64_t i, std::int64_t n) { put(to + i, get(from + i, n), n); });
      });
    });
  });
}

void gelu(Tensor in, Tensor out) {
  with_type(in.type, [&](auto tag) {
    using T = decltype(tag);
    const T* from = in.as<const T>();
    T* to = out.as<T>();
    parallel_ranges(in.count, elementwise_grain, [&](std::int64_t first, std::int64_t last, int) {
      over(first, last, [&](std::int64_t i, std::int64_t n) {
        const Vec x = get(from + i, n);
        put(to + i, x * logistic_of_gelu(x), n);
      });
    });
  });
}

void gelu_backward(Tensor in, Tensor data) {
  with_type(in.type, [&](auto tag) {
    using T = decltype(tag);
    const T* from = in.as<const T>();
    T* to = data.as<T>();
    parallel_ranges(in.count, elementwise_grain, [&](std::int64_t first, std::int64_t last, int) {
      over(first, last, [&](std::int64_t i, std::int64_t n) {
        const Vec x = get(from + i, n);
        const Vec s = logistic_of_gelu(x);
        const Vec slope = s + x * s * (1.0f - s) * (two_root * (1.0f + (3 * cubic) * (x * x)));
        put(to + i, get(to + i, n) * slope, n);
      });
    });
  });
}

void residual_add(Tensor in, Tensor bias, Tensor residual, Tensor out, std::int64_t rows, std::int64_t width) {
  const std::int64_t grain = std::max<std::int64_t>(1, elementwise_grain / width);
  with_type(out.type, [&](auto tag) {
    using T = decltype(tag);
    parallel_ranges(rows, grain, [&](std::int64_t first, std::int64_t last, int) {
      for (std::int64_t r = first; r < last; ++r) {
        const T *x = in.as<const T>() + r * width, *b = bias.as<const T>();
        const T* other = residual ? residual.as<const T>() + r * width : nullptr;
        T* to = out.as<T>() + r * width;
        over(0, width, [&](std::int64_t i, std::int64_t n) {
          Vec v = get(x + i, n);
          if (b) v += get(b + i, n);
          if (other) v += get(other + i, n);
          put(to + i, v, n);
        });
      }
    });
  });
}

void column_sum(Tensor in, Tensor out, std::int64_t rows, std::int64_t width, bool accumulate) {
  // Threads share the columns, so that the result does not depend on their number. Sums of 64 rows are added up, not
  // single rows: the rounding error grows with the square root of fewer terms.
  constexpr std::int64_t block = 64, columns = 4 * lanes;
  with_type(in.type, [&](auto tag) {
    using T = decltype(tag);
    const T* from = in.as<const T>();
    float* to = out.f32();
    parallel_ranges(width, std::max<std::int64_t>(columns, elementwise_grain / std::max<std::int64_t>(rows, 1)),
                    [&](std::int64_t first, std::int64_t last, int) {
                      if (!accumulate) std::fill(to + first, to + last, 0.0f);
                      for (std::int64_t r0 = 0; r0 < rows; r0 += block) {
                        const std::int64_t r1 = std::min(rows, r0 + block);
                        std::int64_t c = first;
                        for (; c + columns <= last; c += columns) {
                          Vec s[4] = {};
                          for (std::int64_t r = r0; r < r1; ++r) {
                            for (int v = 0; v < 4; ++v) s[v] += simd::load(from + r * width + c + v * lanes);
                          }
                          for (int v = 0; v < 4; ++v) {
                            float* p = to + c + v * lanes;
                            simd::store(p, simd::load(p) + s[v]);
                          }
                        }
                        over(c, last, [&](std::int64_t i, std::int64_t n) {
                          Vec s{};
                          for (std::int64_t r = r0; r < r1; ++r) s += get(from + r * width + i, n);
                          put(to + i, get(to + i, n) + s, n);
                        });
                      }
                    });
  });
}

void reduce(Tensor to, const void* a, const void* b, Reduction reduction) {
  with_type(to.type, [&](auto tag) {
    using T = decltype(tag);
    const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
    T* out = to.as<T>();
    over(0, to.count, [&](std::int64_t i, std::int64_t n) {
      const Vec u = get(x + i, n), v = get(y + i, n);
      put(out + i, reduction == Reduction::sum ? u + v : simd::max(u, v), n);
    });
  });
}

}  // namespace harness::cpu
