#include <algorithm>
#include <cmath>

#include "backend/cpu/kernels.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/simd.h"

namespace harness::cpu {
namespace {

using simd::get;
using simd::over;
using simd::put;
using simd::Vec;

// Elements i and i + half of one head.
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

// Angles and their functions are f32 whatever the data are: bf16 would not tell one late position from the next. Each
// is used for that position of all sequences and heads.
void run(const backend::Bound<program::Rope>& op, const backend::KernelContext& context) {
  const std::int64_t half = op.head_dim / 2, positions = std::min(op.sequence, op.rows);
  const double step = -2 * std::log(op.theta) / static_cast<double>(op.head_dim);
  const std::int64_t of_position = (op.rows + op.sequence - 1) / op.sequence * op.heads * op.head_dim;
  backend::with_type(op.data.type, [&](auto tag) {
    using T = decltype(tag);
    parallel_ranges(positions, row_grain(of_position), [&](std::int64_t first, std::int64_t last, int thread) {
      float *cosine = context.scratch + thread * op.head_dim, *sine = cosine + half;
      for (std::int64_t p = first; p < last; ++p) {
        for (std::int64_t i = 0; i < half; ++i) {
          const auto frequency = static_cast<float>(std::exp(step * static_cast<double>(i)));
          const float angle = static_cast<float>(p) * frequency;
          cosine[i] = std::cos(angle);
          sine[i] = op.backward ? -std::sin(angle) : std::sin(angle);
        }
        for (std::int64_t row = p; row < op.rows; row += op.sequence) {
          T* heads = op.data.as<T>() + row * op.stride;
          for (std::int64_t h = 0; h < op.heads; ++h) turn_head(heads + h * op.head_dim, cosine, sine, half);
        }
      }
    });
  });
}

}  // namespace harness::cpu
