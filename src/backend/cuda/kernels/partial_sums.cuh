#pragma once

#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/kernels/vectors.cuh"

namespace harness::cuda {

// Sums over rows in two stages. Many blocks each sum some rows to one row of partial sums; then those are summed. Which
// rows go together depends on the shapes alone.

/// Up to three rows of the same width next to each other, and where each goes. nullptr: nowhere.
struct Sums {
  float* to[3];
};

constexpr int tile_lanes = 32, tile_groups = 8;  // of a block: lanes take columns, groups take rows

/// partial[slice, :] = the sum over the slice's rows of in [rows, width], or, in the last stage, with one slice, to its
/// places. Grid: tiles * slices. n divides the width.
template <class T, int n, bool last>
__global__ void __launch_bounds__(tile_lanes* tile_groups)
    sum_rows(const T* in, std::int64_t rows, std::int64_t width, int tiles, std::int64_t rows_per_slice, float* partial,
             Sums sums, std::int64_t sums_width, bool accumulate) {
  constexpr int columns = tile_lanes * n;
  HARNESS_SHARED(float, shared, tile_groups* columns);
  const int lane = threadIdx.x % tile_lanes, group = threadIdx.x / tile_lanes;
  const std::int64_t tile = blockIdx.x % tiles, slice = blockIdx.x / tiles;
  const std::int64_t c = (tile * tile_lanes + lane) * n;
  const std::int64_t first = slice * rows_per_slice;
  const std::int64_t end = first + rows_per_slice < rows ? first + rows_per_slice : rows;
  float total[n] = {};
  if (c < width) {
    std::int64_t r = first + group;
    for (; r + 3 * tile_groups < end; r += 4 * tile_groups) {
      Raw<T, n> raw[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) raw[k] = load_raw<n>(in + (r + k * tile_groups) * width + c);
#pragma unroll
      for (int k = 0; k < 4; ++k) add_to(total, raw[k]);
    }
    for (; r < end; r += tile_groups) add_to(total, load_raw<n>(in + r * width + c));
  }
#pragma unroll
  for (int k = 0; k < n; ++k) shared[group * columns + k * tile_lanes + lane] = total[k];
  __syncthreads();
  for (int i = threadIdx.x; i < columns; i += tile_lanes * tile_groups) {
    const std::int64_t column = tile * columns + i;  // stored at lane i / n, element i % n
    if (column >= width) break;
    float sum = 0;
#pragma unroll
    for (int g = 0; g < tile_groups; ++g) sum += shared[g * columns + i % n * tile_lanes + i / n];
    if (last) {
      const std::int64_t which = column / sums_width;
      float* to = sums.to[0];  // by a constant index each: one that varies would put the array into memory
      if (which == 1) to = sums.to[1];
      if (which == 2) to = sums.to[2];
      if (to) {
        to += column % sums_width;
        *to = accumulate ? *to + sum : sum;
      }
    } else {
      partial[slice * width + column] = sum;
    }
  }
}

/// The last stage: partial [slices, count * sums_width] to `count` places.
inline void launch_last_sums(const char* name, Stream stream, const float* partial, std::int64_t slices,
                             std::int64_t sums_width, int count, const Sums& sums, bool accumulate) {
  const std::int64_t width = sums_width * count, tiles = ceil_div(width, tile_lanes);
  launch(name, sum_rows<float, 1, true>, {tiles, tile_lanes * tile_groups}, stream, partial, slices, width, tiles,
         slices, nullptr, sums, sums_width, accumulate);
}

}  // namespace harness::cuda
