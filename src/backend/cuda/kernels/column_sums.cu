#include <algorithm>
#include <type_traits>

#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/kernels/reductions.cuh"

namespace harness::cuda {
namespace {

// Sums over rows in two stages: many blocks each sum some rows into one row of partial sums, then those are summed.
// Grouping and order of additions depend on the shapes alone, and for norms on the number of multiprocessors.
//
// The last block of the first stage could do the second stage without a launch, but it would be alone. A norm of width
// 2048 leaves 528 rows of 3 * 2048 partial sums on an H200, 13 MB: at 64 bytes per clock, one multiprocessor needs more
// than 100 us, and a launch costs about 4 us (calculated, not measured). So the second stage is a launch of many
// blocks.

constexpr int tile_lanes = 32, tile_groups = 8;  // of a block: lanes take columns, groups take rows

// Calls put(column, sum over rows [first, end) of in [rows, width]) for the columns of a tile. `shared` has tile_groups
// * tile_lanes * n elements; n divides the width. The whole block must call it.
template <class T, int n, class Put>
__device__ __forceinline__ void sum_tile(const T* in, std::int64_t first, std::int64_t end, std::int64_t width,
                                         std::int64_t tile, float* shared, const Put& put) {
  constexpr int columns = tile_lanes * n;
  const int lane = threadIdx.x % tile_lanes, group = threadIdx.x / tile_lanes;
  const std::int64_t c = (tile * tile_lanes + lane) * n;
  float total[n] = {};
  if (c < width) {
    constexpr int batch = n == 1 ? 16 : 4;  // loads before the first addition, limited by registers
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

// The first stage: partial[slice, :] = the sum over the slice's rows of in [rows, width]. Grid: tiles * slices.
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

// Partial column sums: `slices` rows of `count` * `width` f32. `to` receives the final sums (null: not stored), added
// to its contents if `accumulate`.
struct PartialSums {
  const float* partial;
  std::int64_t slices, width;
  int count;  // up to 3
  float* to[3];
  bool accumulate;
};

// The second stage. Grid: tiles.
__global__ void __launch_bounds__(tile_lanes* tile_groups) finish_sums(PartialSums sums) {
  HARNESS_SHARED(float, shared, tile_groups* tile_lanes);
  sum_tile<float, 1>(sums.partial, 0, sums.slices, sums.width * sums.count, blockIdx.x, shared,
                     [&](std::int64_t column, float sum) {
                       float* to = sums.to[0];  // constant indices only: a variable one would use local memory
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

void launch_finish_sums(const char* name, Stream stream, const PartialSums& sums) {
  launch(name, finish_sums, {ceil_div(sums.width * sums.count, tile_lanes), tile_lanes * tile_groups}, stream, sums);
}

// Enough slices to keep a large device busy even for narrow matrices, at most one per 32 rows (rounded up).
std::int64_t slices_of(std::int64_t rows, std::int64_t width) {
  const std::int64_t wanted = std::clamp<std::int64_t>(512 * 1024 / std::max<std::int64_t>(width, 1), 16, 512);
  return std::clamp<std::int64_t>(ceil_div(rows, 32), 1, wanted);
}

// ---- norms, backward ------------------------------------------------------------------------------------------------

// With h = (x - mean) rstd and g = gamma dout: din = rstd (g - mean(g) - h mean(g h)); dgamma, dbeta and dbias are the
// column sums of dout h, dout and din. RmsNorm does not centre a row, so it has neither mean nor mean(g) nor dbeta. A
// block takes every gridDim-th row, keeps its own column sums and writes them as one row of `partial` [blocks, sums *
// width].
template <class T, bool centres>
struct Backward {
  const T *dout, *x, *gamma;
  const float *mean, *rstd;
  const T* dresidual;
  T* din;
  float* partial;
  std::int64_t rows, width;
  int sums;  // up to 3, in order: dgamma, dbeta if there is one, dbias if requested
  static constexpr int before_bias = centres ? 2 : 1;
  __device__ __forceinline__ bool sums_bias() const { return sums > before_bias; }
  __device__ __forceinline__ float mean_of(std::int64_t row) const {
    if constexpr (centres) return mean[row];
    return 0;
  }
};

constexpr int n_kept = 8;
// Three column sums and three tensors of 8 columns take many registers: blocks of f32 must be smaller, and so must
// those of f16 with means, whose conversions take a few more on sm_80.
template <class T, bool centres>
constexpr int max_threads() {
  if (sizeof(T) == 4) return 512;
  return centres && std::is_same_v<T, f16> ? 768 : 1024;
}
constexpr int wide_threads = 1024, narrow_threads = 512;

// Rows of up to 8 elements per thread, column sums in registers.
template <class T, bool centres>
__global__ void __launch_bounds__(max_threads<T, centres>()) norm_backward_kept(Backward<T, centres> t) {
  constexpr int n = n_kept;
  HARNESS_SHARED(float2, parts, 2 * max_warps);
  const int c = threadIdx.x * n;
  const auto width = static_cast<int>(t.width);
  const bool mine = c < width;
  const float share = 1.0f / static_cast<float>(width);
  float sum_gamma[n] = {}, sum_beta[n] = {}, sum_bias[n] = {};
  const Raw<T, n> gamma_raw = mine ? load_raw<n>(t.gamma + c) : zero_raw<T, n>();
  int turn = 0;
  for (std::int64_t row = blockIdx.x; row < t.rows; row += gridDim.x, turn ^= 1) {
    const std::int64_t at = row * width + c;
    Raw<T, n> dout_raw = zero_raw<T, n>(), x_raw = zero_raw<T, n>(), dresidual_raw = zero_raw<T, n>();
    if (mine) {
      dout_raw = load_raw<n>(t.dout + at);
      x_raw = load_raw<n>(t.x + at);
      if (t.dresidual) dresidual_raw = load_raw<n>(t.dresidual + at);
    }
    const float mean = t.mean_of(row), rstd = t.rstd[row];
    float2 sums = make_float2(0, 0);
    {
      float dout[n], x[n], gamma[n];
      unpack(dout_raw, dout);
      unpack(x_raw, x);
      unpack(gamma_raw, gamma);
#pragma unroll
      for (int k = 0; k < n; ++k) {
        const float h = (x[k] - mean) * rstd, g = dout[k] * gamma[k];
        sums.x += g;
        sums.y += g * h;
        sum_gamma[k] += dout[k] * h;
        if constexpr (centres) sum_beta[k] += dout[k];
      }
    }
    sums = block_sum(sums, parts + turn * max_warps);
    const float mean_g = centres ? sums.x * share : 0, mean_gh = sums.y * share;
    if (mine) {
      float d[n], x[n], gamma[n];
      unpack(dout_raw, d);
      unpack(x_raw, x);
      unpack(gamma_raw, gamma);
#pragma unroll
      for (int k = 0; k < n; ++k) d[k] = rstd * (d[k] * gamma[k] - mean_g - (x[k] - mean) * rstd * mean_gh);
      add_to(d, dresidual_raw);
      const Raw<T, n> din = pack<T>(d);
      store_raw(t.din + at, din);
      add_to(sum_bias, din);  // rounded, as the next product reads it
    }
  }
  if (!mine) return;
  float* to = t.partial + static_cast<std::int64_t>(blockIdx.x) * t.sums * width + c;
  store(to, sum_gamma);
  if constexpr (centres) store(to + width, sum_beta);
  if (t.sums_bias()) store(to + t.before_bias * width, sum_bias);
}

// Any width: reads rows again for din and keeps column sums in shared memory, or in `partial` itself if they do not
// fit. Each thread accesses only its own columns there.
template <class T, bool centres, int n>
__global__ void __launch_bounds__(n == 1 ? narrow_threads : wide_threads)
    norm_backward_reread(Backward<T, centres> t, bool sums_in_shared) {
  HARNESS_SHARED(float2, parts, 2 * max_warps);
  const std::int64_t width = t.width, first = threadIdx.x * n, stride = blockDim.x * n;
  const float share = 1.0f / static_cast<float>(width);
  float* const own = t.partial + static_cast<std::int64_t>(blockIdx.x) * t.sums * width;
  float* const sums_at = sums_in_shared ? dynamic_shared() : own;
  const float zero[n] = {};
  for (int s = 0; s < t.sums; ++s) {
    for (std::int64_t c = first; c < width; c += stride) store_anywhere(sums_at + s * width + c, zero);
  }
  int turn = 0;
  for (std::int64_t row = blockIdx.x; row < t.rows; row += gridDim.x, turn ^= 1) {
    const std::int64_t base = row * width, ahead = base + gridDim.x * width;
    const bool more = row + gridDim.x < t.rows && threadIdx.x % 8 == 0;
    const float mean = t.mean_of(row), rstd = t.rstd[row];
    float2 sums = make_float2(0, 0);
    for (std::int64_t c = first; c < width; c += stride) {
      float dout[n], x[n], gamma[n], of_gamma[n], of_beta[n];
      load(t.dout + base + c, dout);
      load(t.x + base + c, x);
      load(t.gamma + c, gamma);
      if (more) {
        prefetch(t.dout + ahead + c);
        prefetch(t.x + ahead + c);
        if (t.dresidual) prefetch(t.dresidual + ahead + c);
      }
      load(sums_at + c, of_gamma);
      if constexpr (centres) load(sums_at + width + c, of_beta);
#pragma unroll
      for (int k = 0; k < n; ++k) {
        const float h = (x[k] - mean) * rstd, g = dout[k] * gamma[k];
        sums.x += g;
        sums.y += g * h;
        of_gamma[k] += dout[k] * h;
        if constexpr (centres) of_beta[k] += dout[k];
      }
      store_anywhere(sums_at + c, of_gamma);
      if constexpr (centres) store_anywhere(sums_at + width + c, of_beta);
    }
    sums = block_sum(sums, parts + turn * max_warps);
    const float mean_g = centres ? sums.x * share : 0, mean_gh = sums.y * share;
    for (std::int64_t c = first; c < width; c += stride) {
      float d[n], x[n], gamma[n];
      load(t.dout + base + c, d);
      load(t.x + base + c, x);
      load(t.gamma + c, gamma);
#pragma unroll
      for (int k = 0; k < n; ++k) d[k] = rstd * (d[k] * gamma[k] - mean_g - (x[k] - mean) * rstd * mean_gh);
      if (t.dresidual) add_to(d, load_raw<n>(t.dresidual + base + c));
      const Raw<T, n> din = pack<T>(d);
      store_raw(t.din + base + c, din);
      if (t.sums_bias()) {
        float* const at = sums_at + t.before_bias * width + c;
        float of_bias[n];
        load(at, of_bias);
        add_to(of_bias, din);
        store_anywhere(at, of_bias);
      }
    }
  }
  if (!sums_in_shared) return;
  for (int s = 0; s < t.sums; ++s) {
    for (std::int64_t c = first; c < width; c += stride) {
      float v[n];
      load(sums_at + s * width + c, v);
      store(own + s * width + c, v);
    }
  }
}

// As many blocks, with a thread per 8 columns, as all multiprocessors hold at 64 registers per thread.
std::int64_t blocks_of(std::int64_t rows, std::int64_t width, int multiprocessors) {
  const int threads = threads_for(ceil_div(width, n_kept), 1024);
  return std::min<std::int64_t>(rows, std::int64_t{multiprocessors} * std::min(1024 / threads, 16));
}

constexpr int max_multiprocessors = 192;  // of current devices; a larger one is not fully used

std::int64_t blocks_here(std::int64_t rows, std::int64_t width) {
  return blocks_of(rows, width, std::min(device_limits().multiprocessors, max_multiprocessors));
}

template <class T, bool centres>
void launch_norm_backward(const char* name, Stream stream, const Backward<T, centres>& t, std::int64_t blocks) {
  const std::int64_t width = t.width;
  if (width % n_kept == 0 && width <= n_kept * max_threads<T, centres>()) {
    launch(name, norm_backward_kept<T, centres>, {blocks, threads_for(width / n_kept, max_threads<T, centres>())},
           stream, t);
    return;
  }
  const std::int64_t needed = t.sums * width * 4, for_parts = 2 * max_warps * 8;
  const bool fits = needed + for_parts <= device_limits().shared_bytes;
  if (width % n_kept == 0) {
    launch(name, norm_backward_reread<T, centres, n_kept>, {blocks, wide_threads, fits ? needed : 0}, stream, t, fits);
  } else {
    launch(name, norm_backward_reread<T, centres, 1>, {blocks, threads_for(width, narrow_threads), fits ? needed : 0},
           stream, t, fits);
  }
}

template <bool centres, class Op>  // Op: bound
void run_both_stages(const char* name, Stream stream, const Op& a, float* scratch) {
  const int of_bias = a.dbias ? 1 : 0;
  PartialSums sums{scratch,     blocks_here(a.rows, a.width),    a.width,
                   1 + of_bias, {a.dgamma.f32(), a.dbias.f32()}, a.accumulate};
  const float* mean = nullptr;
  if constexpr (centres) {
    mean = a.mean.f32();
    sums.count = 2 + of_bias;
    sums.to[1] = a.dbeta.f32();
    sums.to[2] = a.dbias.f32();
  }
  backend::with_type(a.dout.type, [&](auto tag) {
    using T = decltype(tag);
    const Backward<T, centres> t{a.dout.template as<const T>(),
                                 a.sum.template as<const T>(),
                                 a.gamma.template as<const T>(),
                                 mean,
                                 a.rstd.f32(),
                                 a.dresidual.template as<const T>(),
                                 a.din.template as<T>(),
                                 scratch,
                                 a.rows,
                                 a.width,
                                 sums.count};
    launch_norm_backward(name, stream, t, sums.slices);
  });
  launch_finish_sums("norm_backward (second stage)", stream, sums);
}

}  // namespace

std::int64_t scratch_floats(const program::ColumnSum& op) {
  return slices_of(op.rows, op.width) * op.width;
}

void run(Stream stream, const backend::Bound<program::ColumnSum>& op, const backend::KernelContext& context) {
  const std::int64_t rows = op.rows, width = op.width;
  float* scratch = context.scratch;
  const std::int64_t slices = slices_of(rows, width);
  with_lanes(op.in.type, width, [&]<class T, int n>(Lanes<T, n>) {
    const std::int64_t tiles = ceil_div(width, tile_lanes * n);
    launch("column_sum", sum_slices<T, n>, {tiles * slices, tile_lanes * tile_groups}, stream, op.in.as<const T>(),
           rows, width, tiles, ceil_div(rows, slices), scratch);
  });
  launch_finish_sums("column_sum (second stage)", stream, {scratch, slices, width, 1, {op.out.f32()}, op.accumulate});
}

std::int64_t scratch_floats(const program::LayerNormBackward& op) {
  return blocks_of(op.rows, op.width, max_multiprocessors) * 3 * op.width;
}
std::int64_t scratch_floats(const program::RmsNormBackward& op) {
  return blocks_of(op.rows, op.width, max_multiprocessors) * 2 * op.width;
}

void run(Stream stream, const backend::Bound<program::LayerNormBackward>& op, const backend::KernelContext& context) {
  run_both_stages<true>("layer_norm_backward", stream, op, context.scratch);
}
void run(Stream stream, const backend::Bound<program::RmsNormBackward>& op, const backend::KernelContext& context) {
  run_both_stages<false>("rms_norm_backward", stream, op, context.scratch);
}

}  // namespace harness::cuda
