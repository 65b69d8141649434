#pragma once

#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/kernels/vectors.cuh"

namespace harness::cuda {

// Sums over rows in two stages. Many blocks each sum some rows to one row of partial sums; then those are summed. Which
// rows go together, and the order in which they are added, depends on the shapes alone.
//
// The last block of the first stage to end could do the second stage, without a launch, but would be alone with it. A
// norm of width 2048 leaves 528 rows of 3 * 2048 partial sums on an H200, 13 MB: at 64 bytes a clock more than 100 us
// for one multiprocessor, against some 4 us that a launch costs (calculated, not measured). So the second stage is a
// launch of many blocks.

constexpr int tile_lanes = 32, tile_groups = 8;  // of a block: lanes take columns, groups take rows

/// put(column, sum over rows [first, end) of in [rows, width]) for the columns of a tile. `shared` has tile_groups *
/// tile_lanes * n elements; n divides the width. All of the block call it.
template <class T, int n, class Put>
__device__ __forceinline__ void sum_tile(const T* in, std::int64_t first, std::int64_t end, std::int64_t width,
                                         std::int64_t tile, float* shared, const Put& put) {
  constexpr int columns = tile_lanes * n;
  const int lane = threadIdx.x % tile_lanes, group = threadIdx.x / tile_lanes;
  const std::int64_t c = (tile * tile_lanes + lane) * n;
  float total[n] = {};
  if (c < width) {
    constexpr int batch = n == 1 ? 16 : 4;  // loads before the first addition: the registers that there are
    std::int64_t r = first + group;
    for (; r + (batch - 1) * tile_groups < end; r += batch * tile_groups) {
      Raw<T, n> raw[batch];
#pragma unroll
      for (int k = 0; k < batch; ++k) raw[k] = load_raw<n>(in + (r + k * tile_groups) * width + c);
#pragma unroll
      for (int k = 0; k < batch; ++k) add_to(total, raw[k]);
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
    put(column, sum);
  }
}

/// The first stage: partial[slice, :] = the sum over the slice's rows of in [rows, width]. Grid: tiles * slices.
template <class T, int n>
__global__ void __launch_bounds__(tile_lanes* tile_groups)
    sum_slices(const T* in, std::int64_t rows, std::int64_t width, int tiles, std::int64_t rows_per_slice,
               float* partial) {
  HARNESS_SHARED(float, shared, tile_groups* tile_lanes* n);
  const std::int64_t tile = blockIdx.x % tiles, slice = blockIdx.x / tiles;
  const std::int64_t first = slice * rows_per_slice;
  const std::int64_t end = first + rows_per_slice < rows ? first + rows_per_slice : rows;
  sum_tile<T, n>(in, first, end, width, tile, shared,
                 [&](std::int64_t column, float sum) { partial[slice * width + column] = sum; });
}

/// Column sums that are not complete: `slices` rows of `count` times `width` f32, and where each column's sum goes (a
/// null pointer: nowhere), added to what is there if `accumulate`.
struct PartialSums {
  const float* partial;
  std::int64_t slices, width;
  int count;  // up to 3
  float* to[3];
  bool accumulate;
};

/// The second stage. Grid: tiles.
static __global__ void __launch_bounds__(tile_lanes* tile_groups) finish_sums(PartialSums sums) {
  HARNESS_SHARED(float, shared, tile_groups* tile_lanes);
  sum_tile<float, 1>(sums.partial, 0, sums.slices, sums.width * sums.count, blockIdx.x, shared,
                     [&](std::int64_t column, float sum) {
                       float* to = sums.to[0];  // by a constant index each: one that varies would use local memory
                       if (column >= sums.width) {
                         column -= sums.width;
                         to = sums.to[1];
                       }
                       if (column >= sums.width) {
                         column -= sums.width;
                         to = sums.to[2];
                       }
                       if (!to) return;
                       to += column;
                       *to = sums.accumulate ? *to + sum : sum;
                     });
}

inline void launch_finish_sums(const char* name, Stream stream, const PartialSums& sums) {
  launch(name, finish_sums, {ceil_div(sums.width * sums.count, tile_lanes), tile_lanes * tile_groups}, stream, sums);
}

}  // namespace harness::cuda
