#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/kernels/reductions.cuh"

namespace harness::cuda {
namespace {

// LayerNorm, which subtracts a row's mean (centres), or RmsNorm, which has neither mean nor beta.
template <class T, bool centres>
struct Forward {
  const T *in, *bias, *residual, *gamma, *beta;
  T *sum, *out;
  float *mean, *rstd;
  std::int64_t rows, width;
  float epsilon;
};

template <class T, int n>
struct Parts {
  Raw<T, n> in, residual;
};
template <class T, int n, bool centres>
__device__ __forceinline__ Parts<T, n> load_parts(const Forward<T, centres>& t, std::int64_t at) {
  return {load_raw<n>(t.in + at), t.residual ? load_raw<n>(t.residual + at) : zero_raw<T, n>()};
}

// Returns in + bias + residual, rounded as `sum` is: the input of the norm and of the backward pass.
template <class T, int n, bool centres>
__device__ __forceinline__ Raw<T, n> summed(const Forward<T, centres>& t, const Parts<T, n>& parts, std::int64_t at,
                                            std::int64_t c) {
  if (!t.sum) return parts.in;
  float v[n];
  unpack(parts.in, v);
  if (t.bias) add_to(v, load_raw<n>(t.bias + c));
  add_to(v, parts.residual);
  const Raw<T, n> sum = pack<T>(v);
  store_raw(t.sum + at, sum);
  return sum;
}

template <class T, int n, bool centres>
__device__ __forceinline__ void put_normalised(const Forward<T, centres>& t, std::int64_t at, std::int64_t c,
                                               const Raw<T, n>& x, float mean, float rstd) {
  float v[n], gamma[n], beta[n] = {};
  unpack(x, v);
  unpack(load_raw<n>(t.gamma + c), gamma);
  if constexpr (centres) unpack(load_raw<n>(t.beta + c), beta);
#pragma unroll
  for (int k = 0; k < n; ++k) v[k] = (v[k] - mean) * rstd * gamma[k] + beta[k];
  store(t.out + at, v);
}

template <class T, bool centres>
__device__ __forceinline__ void put_statistics(const Forward<T, centres>& t, std::int64_t row, float mean, float rstd) {
  if constexpr (centres) t.mean[row] = mean;
  t.rstd[row] = rstd;
}

constexpr int pieces = 2;          // vectors per thread: 16 elements of bf16 fit the registers of 1024 threads
constexpr int rows_per_block = 4;  // later rows find gamma, beta and bias in the L1 cache
template <class T>
constexpr std::int64_t widest_kept = 1024 * pieces* lanes_of<T>;

// A warp holds a row without bias or residual in registers. It needs no barrier, and half the instructions that a block
// needs for the same row; instructions are the limit at low clocks.
constexpr int rows_of_warps = 4;  // per block
template <class T, bool centres, int most>
__global__ void __launch_bounds__(32 * rows_of_warps, 5) norm_warp(Forward<T, centres> t) {
  constexpr int n = lanes_of<T>;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * rows_of_warps + threadIdx.x / 32;
  if (row >= t.rows) return;
  const int lane = static_cast<int>(threadIdx.x % 32), first = lane * n;
  const auto width = static_cast<int>(t.width);
  const std::int64_t base = row * width;
  const float share = 1.0f / static_cast<float>(width);
  Raw<T, n> x[most];
#pragma unroll
  for (int p = 0; p < most; ++p) {
    const int c = first + p * 32 * n;
    x[p] = c < width ? load_raw<n>(t.in + base + c) : zero_raw<T, n>();
  }
  float total = 0;
#pragma unroll
  for (int p = 0; p < most; ++p) {
    float v[n];
    unpack(x[p], v);
#pragma unroll
    for (int k = 0; k < n; ++k) total += v[k];
  }
  const float mean = centres ? warp_sum(total) * share : 0;
  float square = 0;
#pragma unroll
  for (int p = 0; p < most; ++p) {
    if (first + p * 32 * n >= width) continue;
    float v[n];
    unpack(x[p], v);
#pragma unroll
    for (int k = 0; k < n; ++k) square += (v[k] - mean) * (v[k] - mean);
  }
  const float rstd = rsqrtf(warp_sum(square) * share + t.epsilon);
  if (lane == 0) put_statistics(t, row, mean, rstd);
#pragma unroll
  for (int p = 0; p < most; ++p) {
    const int c = first + p * 32 * n;
    if (c >= width) continue;
    put_normalised<T, n>(t, base + c, c, x[p], mean, rstd);
  }
}

// The widest row that a warp holds, with this many vectors per lane.
template <class T>
constexpr std::int64_t width_of(int vectors) {
  return std::int64_t{32} * vectors * lanes_of<T>;
}

// A block holds a row in registers: memory is touched once. A thread's vectors are one block width apart.
template <class T, bool centres>
__global__ void __launch_bounds__(1024) norm_kept(Forward<T, centres> t) {
  constexpr int n = lanes_of<T>;
  HARNESS_SHARED(float, sums, max_warps);
  HARNESS_SHARED(float, squares, max_warps);
  const int stride = blockDim.x * n, first = threadIdx.x * n;
  const auto width = static_cast<int>(t.width);
  const float share = 1.0f / static_cast<float>(width);
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * rows_per_block;
  const std::int64_t end = begin + rows_per_block < t.rows ? begin + rows_per_block : t.rows;
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t base = row * width;
    Raw<T, n> x[pieces];
    Parts<T, n> parts[pieces];
    float total = 0;
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      const int c = first + p * stride;
      if (c < width) parts[p] = load_parts<T, n>(t, base + c);
    }
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      const int c = first + p * stride;
      if (c < width) x[p] = summed<T, n>(t, parts[p], base + c, c);
    }
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      if (first + p * stride >= width) continue;
      float v[n];
      unpack(x[p], v);
#pragma unroll
      for (int k = 0; k < n; ++k) total += v[k];
    }
    const float mean = centres ? block_sum(total, sums) * share : 0;
    float square = 0;
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      if (first + p * stride >= width) continue;
      float v[n];
      unpack(x[p], v);
#pragma unroll
      for (int k = 0; k < n; ++k) square += (v[k] - mean) * (v[k] - mean);
    }
    // Without the reduction for the mean in between, rows alternate between the two arrays.
    float* const turn = centres || (row - begin) % 2 == 0 ? squares : sums;
    const float rstd = rsqrtf(block_sum(square, turn) * share + t.epsilon);
    if (threadIdx.x == 0) put_statistics(t, row, mean, rstd);
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      const int c = first + p * stride;
      if (c >= width) continue;
      put_normalised<T, n>(t, base + c, c, x[p], mean, rstd);
    }
  }
}

// Any width: reads the row again, from the caches if it fits.
template <class T, bool centres, int n>
__global__ void __launch_bounds__(512) norm_reread(Forward<T, centres> t) {
  HARNESS_SHARED(float, sums, max_warps);
  HARNESS_SHARED(float, squares, max_warps);
  const std::int64_t row = blockIdx.x, base = row * t.width;
  const std::int64_t first = threadIdx.x * n, stride = blockDim.x * n;
  const float share = 1.0f / static_cast<float>(t.width);
  const T* x = t.sum ? t.sum : t.in;  // each thread reads what it wrote itself
  float total = 0;
  for (std::int64_t c = first; c < t.width; c += stride) {
    float v[n];
    unpack(summed<T, n>(t, load_parts<T, n>(t, base + c), base + c, c), v);
#pragma unroll
    for (int k = 0; k < n; ++k) total += v[k];
  }
  const float mean = centres ? block_sum(total, sums) * share : 0;
  float square = 0;
  for (std::int64_t c = first; c < t.width; c += stride) {
    float v[n];
    load(x + base + c, v);
#pragma unroll
    for (int k = 0; k < n; ++k) square += (v[k] - mean) * (v[k] - mean);
  }
  const float rstd = rsqrtf(block_sum(square, squares) * share + t.epsilon);
  if (threadIdx.x == 0) put_statistics(t, row, mean, rstd);
  for (std::int64_t c = first; c < t.width; c += stride) {
    put_normalised<T, n>(t, base + c, c, load_raw<n>(x + base + c), mean, rstd);
  }
}

template <class T, bool centres>
void launch_norm(const char* name, Stream stream, const Forward<T, centres>& t) {
  constexpr int n = lanes_of<T>;
  const std::int64_t rows = t.rows, width = t.width;
  if (width % n == 0 && !t.sum && width <= width_of<T>(8)) {
    const auto kernel = width <= width_of<T>(4) ? norm_warp<T, centres, 4> : norm_warp<T, centres, 8>;
    launch(name, kernel, {ceil_div(rows, rows_of_warps), 32 * rows_of_warps}, stream, t);
  } else if (width % n != 0) {
    launch(name, norm_reread<T, centres, 1>, {rows, threads_for(width, 512)}, stream, t);
  } else if (width > widest_kept<T>) {
    launch(name, norm_reread<T, centres, n>, {rows, 512}, stream, t);
  } else {
    const int threads = threads_for(ceil_div(width, pieces * n), 1024);
    launch(name, norm_kept<T, centres>, {ceil_div(rows, rows_per_block), threads}, stream, t);
  }
}

}  // namespace

void run(Stream stream, const backend::Bound<program::LayerNorm>& a, const backend::KernelContext&) {
  backend::with_type(a.in.type, [&](auto tag) {
    using T = decltype(tag);
    launch_norm("layer_norm", stream,
                Forward<T, true>{a.in.as<const T>(), a.bias.as<const T>(), a.residual.as<const T>(),
                                 a.gamma.as<const T>(), a.beta.as<const T>(), a.sum.as<T>(), a.out.as<T>(),
                                 a.mean.f32(), a.rstd.f32(), a.rows, a.width, static_cast<float>(a.epsilon)});
  });
}

void run(Stream stream, const backend::Bound<program::RmsNorm>& a, const backend::KernelContext&) {
  backend::with_type(a.in.type, [&](auto tag) {
    using T = decltype(tag);
    launch_norm("rms_norm", stream,
                Forward<T, false>{a.in.as<const T>(), a.bias.as<const T>(), a.residual.as<const T>(),
                                  a.gamma.as<const T>(), nullptr, a.sum.as<T>(), a.out.as<T>(), nullptr, a.rstd.f32(),
                                  a.rows, a.width, static_cast<float>(a.epsilon)});
  });
}

}  // namespace harness::cuda
