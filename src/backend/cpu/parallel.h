#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace harness::cpu {

/// Splits [0, n) among the OpenMP threads in whole multiples of `grain` and calls f(first, last, thread). The split
/// depends on n, `grain` and the number of threads alone. Small work is not split.
template <class F>
void parallel_ranges(std::int64_t n, std::int64_t grain, F&& f) {
  const std::int64_t units = (n + grain - 1) / grain;
  const int threads = static_cast<int>(std::min<std::int64_t>(omp_get_max_threads(), units));
  if (threads <= 1) {
    if (n > 0) f(std::int64_t{0}, n, 0);
    return;
  }
#pragma omp parallel num_threads(threads)
  {
    const int t = omp_get_thread_num(), of = omp_get_num_threads();
    const std::int64_t first = units * t / of * grain, last = std::min(units * (t + 1) / of * grain, n);
    if (first < last) f(first, last, t);
  }
}

inline constexpr std::int64_t elementwise_grain = 16384;  // elements: some microseconds of work
/// The number of rows of `width` elements in such a grain, at least one.
inline std::int64_t row_grain(std::int64_t width) {
  return std::max<std::int64_t>(1, elementwise_grain / width);
}

/// Calls f(row) in parallel for each of `rows` rows of `width` elements.
template <class F>
void parallel_rows(std::int64_t rows, std::int64_t width, F&& f) {
  parallel_ranges(rows, row_grain(width), [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t r = first; r < last; ++r) f(r);
  });
}

}  // namespace harness::cpu
