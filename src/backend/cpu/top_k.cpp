#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "backend/cpu/kernels.h"
#include "backend/cpu/parallel.h"

namespace harness::cpu {
namespace {

// An integer that sorts like |x|, with NaN above all others.
std::uint32_t magnitude(float x) {
  return std::bit_cast<std::uint32_t>(x) & 0x7fffffffU;
}

// The smallest of the k largest magnitudes, and how many of the k elements have it.
struct Threshold {
  std::uint32_t least = 0;
  std::int64_t equal = 0;
};

// Radix selection: finds the threshold digit by digit, the highest first, from histograms of the magnitudes that match
// the digits found so far.
Threshold threshold_of(const float* x, std::int64_t n, std::int64_t k) {
  constexpr int digit_bits = 11, digits = 1 << digit_bits;
  using Histogram = std::array<std::int64_t, digits>;
  Threshold found{0, k};
  for (const int shift : {22, 11, 0}) {
    std::vector<Histogram> of_thread(omp_get_max_threads(), Histogram{});
    parallel_ranges(n, elementwise_grain, [&](std::int64_t first, std::int64_t last, int thread) {
      Histogram& counts = of_thread[thread];
      for (std::int64_t i = first; i < last; ++i) {
        const std::uint32_t digits_so_far = magnitude(x[i]) >> shift;
        if (digits_so_far >> digit_bits == found.least) ++counts[digits_so_far % digits];
      }
    });
    const auto count = [&](int digit) {
      std::int64_t sum = 0;
      for (const Histogram& counts : of_thread) sum += counts[digit];
      return sum;
    };
    int digit = digits - 1;
    for (std::int64_t here = count(digit); here < found.equal; here = count(digit)) {
      found.equal -= here;
      --digit;
    }
    found.least = found.least << digit_bits | static_cast<std::uint32_t>(digit);
  }
  return found;
}

}  // namespace

void run(const backend::Bound<program::TopK>& op, const backend::KernelContext&) {
  const std::int64_t n = op.gradient.count;
  const float* gradient = op.gradient.f32();
  float *residual = op.residual.f32(), *values = op.values.f32();
  auto* indices = op.indices.as<std::int32_t>();
  parallel_ranges(n, elementwise_grain, [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t i = first; i < last; ++i) residual[i] += gradient[i];
  });
  const Threshold threshold = threshold_of(residual, n, op.values.count);

  // The counts of the ranges before a thread's own give its first place among the kept elements.
  struct Found {
    std::int64_t above = 0, equal = 0;
  };
  std::vector<Found> of_thread(omp_get_max_threads());
  parallel_ranges(n, elementwise_grain, [&](std::int64_t first, std::int64_t last, int thread) {
    Found found;
    for (std::int64_t i = first; i < last; ++i) {
      found.above += magnitude(residual[i]) > threshold.least ? 1 : 0;
      found.equal += magnitude(residual[i]) == threshold.least ? 1 : 0;
    }
    of_thread[thread] = found;
  });
  parallel_ranges(n, elementwise_grain, [&](std::int64_t first, std::int64_t last, int thread) {
    Found before;
    for (int t = 0; t < thread; ++t) {
      before.above += of_thread[t].above;
      before.equal += of_thread[t].equal;
    }
    std::int64_t left = std::max<std::int64_t>(0, threshold.equal - before.equal);  // elements at the threshold
    std::int64_t at = before.above + threshold.equal - left;
    for (std::int64_t i = first; i < last; ++i) {
      const std::uint32_t size = magnitude(residual[i]);
      if (size < threshold.least || (size == threshold.least && left-- <= 0)) continue;
      values[at] = residual[i];
      indices[at] = static_cast<std::int32_t>(i);
      residual[i] = 0;
      ++at;
    }
  });
}

// Each thread owns a range of the output, so sums have a fixed order and no two threads write the same element.
void run(const backend::Bound<program::ScatterAdd>& op, const backend::KernelContext&) {
  const float* values = op.values.f32();
  const std::int32_t* indices = op.indices.i32();
  float* out = op.out.f32();
  const std::int64_t of_part = op.values.count / op.parts;
  parallel_ranges(op.out.count, elementwise_grain, [&](std::int64_t first, std::int64_t last, int) {
    std::fill(out + first, out + last, 0.0F);
    for (std::int64_t part = 0; part < op.parts; ++part) {
      const std::int32_t *begin = indices + part * of_part, *end = begin + of_part;
      for (const std::int32_t* at = std::lower_bound(begin, end, first); at < end && *at < last; ++at)
        out[*at] += values[at - indices];
    }
  });
}

}  // namespace harness::cpu
