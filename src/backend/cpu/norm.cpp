#include <cmath>
#include <vector>

#include "backend/cpu/kernels.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/simd.h"

namespace harness::cpu {
namespace {

using simd::get;
using simd::over;
using simd::put;
using simd::Vec;

// True for LayerNorm and its gradient; RmsNorm subtracts no mean and has no beta.
template <class Norm>
constexpr bool centres = requires(Norm norm) {
  norm.mean;
};

constexpr std::int64_t row_block = 32;  // rows whose column sums are formed before they join the total

template <class T, class Norm>
void forward_row(const Norm& t, std::int64_t r) {
  const std::int64_t width = t.width;
  const auto epsilon = static_cast<float>(t.epsilon);
  const T* in = t.in.template as<const T>() + r * width;
  const T *bias = t.bias.template as<const T>(), *gamma = t.gamma.template as<const T>();
  const T* residual = t.residual ? t.residual.template as<const T>() + r * width : nullptr;
  T* sum = t.sum ? t.sum.template as<T>() + r * width : nullptr;
  T* out = t.out.template as<T>() + r * width;
  Vec total{};
  over(0, width, [&](std::int64_t i, std::int64_t n) {
    Vec v = get(in + i, n);
    if (bias) v += get(bias + i, n);
    if (residual) v += get(residual + i, n);
    if (sum) {
      put(sum + i, v, n);
      v = get(sum + i, n);  // as the backward pass will see it: rounded to the buffer's type
    }
    total += v;
  });
  const T* x = sum ? sum : in;
  float mean = 0;
  if constexpr (centres<Norm>) t.mean.f32()[r] = mean = simd::sum(total) / static_cast<float>(width);
  Vec squares{};
  over(0, width, [&](std::int64_t i, std::int64_t n) {
    const Vec d = get(x + i, n, mean) - mean;
    squares += d * d;
  });
  const float rstd = 1 / std::sqrt(simd::sum(squares) / static_cast<float>(width) + epsilon);
  t.rstd.f32()[r] = rstd;
  over(0, width, [&](std::int64_t i, std::int64_t n) {
    Vec y = (get(x + i, n) - mean) * rstd * get(gamma + i, n);
    if constexpr (centres<Norm>) y += get(t.beta.template as<const T>() + i, n);
    put(out + i, y, n);
  });
}

// The column sums of one block of rows, before they join the totals.
struct Sums {
  float *dgamma, *dbeta, *dbias;
};

template <class T, bool with_bias, class Norm>
void backward_row(const Norm& t, std::int64_t r, const Sums& sums) {
  const std::int64_t width = t.width;
  const T *dout = t.dout.template as<const T>() + r * width, *x = t.sum.template as<const T>() + r * width;
  const T* gamma = t.gamma.template as<const T>();
  const T* dresidual = t.dresidual ? t.dresidual.template as<const T>() + r * width : nullptr;
  T* din = t.din.template as<T>() + r * width;
  float mean = 0;
  if constexpr (centres<Norm>) mean = t.mean.f32()[r];
  const float rstd = t.rstd.f32()[r];
  // With h = (x - mean) rstd and g = gamma dout: din = rstd (g - mean(g) - h mean(g h)); RmsNorm has no mean(g).
  Vec sum_g{}, sum_gh{};
  over(0, width, [&](std::int64_t i, std::int64_t n) {
    const Vec dy = get(dout + i, n), h = (get(x + i, n) - mean) * rstd;
    const Vec g = dy * get(gamma + i, n);
    sum_g += g;
    sum_gh += g * h;
    cpu::simd::put(sums.dgamma + i, cpu::simd::get(sums.dgamma + i, n) + dy * h, n);
    if constexpr (centres<Norm>) cpu::simd::put(sums.dbeta + i, cpu::simd::get(sums.dbeta + i, n) + dy, n);
  });
  const float mean_g = centres<Norm> ? simd::sum(sum_g) / static_cast<float>(width) : 0;
  const float mean_gh = simd::sum(sum_gh) / static_cast<float>(width);
  over(0, width, [&](std::int64_t i, std::int64_t n) {
    const Vec h = (get(x + i, n) - mean) * rstd;
    Vec d = rstd * (get(dout + i, n) * get(gamma + i, n) - mean_g - h * mean_gh);
    if (dresidual) d += get(dresidual + i, n);
    put(din + i, d, n);
    if constexpr (with_bias) put(sums.dbias + i, cpu::simd::get(sums.dbias + i, n) + get(din + i, n), n);
  });
}

void add_and_clear(float* to, float* from, std::int64_t width) {
  cpu::simd::over(0, width, [&](std::int64_t i, std::int64_t n) {
    cpu::simd::put(to + i, cpu::simd::get(to + i, n) + cpu::simd::get(from + i, n), n);
    cpu::simd::put(from + i, Vec{}, n);
  });
}

std::int64_t padded_width(std::int64_t width) {
  return (width + 63) / 64 * 64;
}

template <class Norm>
void forward(const Norm& t) {
  backend::with_type(t.in.type, [&](auto tag) {
    parallel_rows(t.rows, t.width, [&](std::int64_t r) { forward_row<decltype(tag)>(t, r); });
  });
}

template <class Norm>
void backward(const Norm& t, float* scratch) {
  const std::int64_t width = t.width, stride = padded_width(width);
  int used = 0;
  backend::with_type(t.dout.type, [&](auto tag) {
    using T = decltype(tag);
    const std::int64_t grain = std::max(row_block, row_grain(width));
    const std::int64_t units = (t.rows + grain - 1) / grain;
    used = static_cast<int>(std::min<std::int64_t>(omp_get_max_threads(), units));
    std::fill_n(scratch, stride * 6 * used, 0.0f);
    parallel_ranges(t.rows, grain, [&](std::int64_t first, std::int64_t last, int thread) {
      float* mine = scratch + thread * 6 * stride;
      const Sums block{mine, mine + stride, mine + 2 * stride};
      for (std::int64_t r0 = first; r0 < last; r0 += row_block) {
        for (std::int64_t r = r0; r < std::min(last, r0 + row_block); ++r) {
          t.dbias ? backward_row<T, true>(t, r, block) : backward_row<T, false>(t, r, block);
        }
        for (int k = 0; k < 3; ++k) add_and_clear(mine + (3 + k) * stride, mine + k * stride, width);
      }
    });
  });
  backend::Tensor outs[3] = {t.dgamma, {}, t.dbias};
  if constexpr (centres<Norm>) outs[1] = t.dbeta;
  for (int k = 0; k < 3; ++k) {
    if (!outs[k]) continue;
    float* out = outs[k].f32();
    if (!t.accumulate) std::fill_n(out, width, 0.0f);
    for (int thread = 0; thread < used; ++thread) add_and_clear(out, scratch + (thread * 6 + 3 + k) * stride, width);
  }
}

}  // namespace

void run(const backend::Bound<program::LayerNorm>& op, const backend::KernelContext&) {
  forward(op);
}
void run(const backend::Bound<program::RmsNorm>& op, const backend::KernelContext&) {
  forward(op);
}

std::int64_t scratch_floats(const program::LayerNormBackward& op, int threads) {
  return padded_width(op.width) * 6 * threads;
}
std::int64_t scratch_floats(const program::RmsNormBackward& op, int threads) {
  return padded_width(op.width) * 6 * threads;
}

void run(const backend::Bound<program::LayerNormBackward>& op, const backend::KernelContext& context) {
  backward(op, context.scratch);
}
void run(const backend::Bound<program::RmsNormBackward>& op, const backend::KernelContext& context) {
  backward(op, context.scratch);
}

}  // namespace harness::cpu
