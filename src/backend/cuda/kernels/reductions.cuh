#pragma once

#include "backend/cuda/kernels/platform.cuh"

namespace harness::cuda {

constexpr unsigned whole_warp = 0xffffffffu;
constexpr int max_warps = 32;

/// Returns to every thread the sum over its group of `lanes` neighbours (a power of two up to 32). The whole warp must
/// call it.
__device__ __forceinline__ float group_sum(float v, int lanes = 32) {
  for (int step = lanes / 2; step > 0; step /= 2) v += __shfl_xor_sync(whole_warp, v, step);
  return v;
}

/// Returns the maximum over such a group, likewise.
__device__ __forceinline__ float group_maximum(float v, int lanes) {
  for (int step = lanes / 2; step > 0; step /= 2) v = fmaxf(v, __shfl_xor_sync(whole_warp, v, step));
  return v;
}

template <class T>
__device__ __forceinline__ T warp_sum(T v) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(whole_warp, v, step);
  return v;
}

__device__ __forceinline__ float warp_maximum(float v) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) v = fmaxf(v, __shfl_xor_sync(whole_warp, v, step));
  return v;
}

// Reductions over a block, with the result in every thread. One barrier each: `parts` (max_warps elements of shared
// memory) may be written again only after another barrier, so repeated reductions alternate between two of them.

template <class T>
__device__ __forceinline__ T block_sum(T v, T* parts) {
  v = warp_sum(v);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  if (lane == 0) parts[warp] = v;
  __syncthreads();
  return warp_sum(lane < warps ? parts[lane] : T{});
}

__device__ __forceinline__ float block_maximum(float v, float* parts) {
  v = warp_maximum(v);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  if (lane == 0) parts[warp] = v;
  __syncthreads();
  return warp_maximum(lane < warps ? parts[lane] : parts[0]);
}

__device__ __forceinline__ float2 block_sum(float2 v, float2* parts) {
  v.x = warp_sum(v.x);
  v.y = warp_sum(v.y);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  if (lane == 0) parts[warp] = v;
  __syncthreads();
  v = lane < warps ? parts[lane] : make_float2(0, 0);
  return make_float2(warp_sum(v.x), warp_sum(v.y));
}

/// Online softmax: the running maximum, and the sum of exp(x - maximum) over the x seen so far.
struct ExponentialSum {
  // Not -infinity: exp(-infinity - maximum) must be 0 even if every x so far is -infinity.
  float maximum = -3.402823466e38f, sum = 0;

  template <int n>
  __device__ __forceinline__ void add(const float (&x)[n]) {
    float high = maximum;
#pragma unroll
    for (int k = 0; k < n; ++k) high = fmaxf(high, x[k]);
    sum *= quick_exp(maximum - high);
    maximum = high;
#pragma unroll
    for (int k = 0; k < n; ++k) sum += quick_exp(x[k] - high);
  }
};

__device__ __forceinline__ ExponentialSum warp_join(ExponentialSum e) {
  const float high = warp_maximum(e.maximum);
  e.sum = warp_sum(e.sum * quick_exp(e.maximum - high));
  e.maximum = high;
  return e;
}

__device__ __forceinline__ ExponentialSum block_join(ExponentialSum e, float2* parts) {
  e = warp_join(e);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  if (lane == 0) parts[warp] = make_float2(e.maximum, e.sum);
  __syncthreads();
  ExponentialSum part;
  if (lane < warps) {
    part.maximum = parts[lane].x;
    part.sum = parts[lane].y;
  }
  return warp_join(part);
}

}  // namespace harness::cuda
