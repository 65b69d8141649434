#include <algorithm>

#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/kernels/vectors.cuh"

namespace harness::cuda {
namespace {

constexpr int check_threads = 256, blocks_per_multiprocessor = 8;

// 0 times a finite number is 0, times any other NaN.
template <int n>
__device__ __forceinline__ void add_zeros(float& zeros, const Raw<float, n>& raw) {
  float v[n];
  unpack(raw, v);
#pragma unroll
  for (int k = 0; k < n; ++k) zeros += v[k] * 0.0f;
}

__global__ void __launch_bounds__(check_threads, resident_blocks(blocks_per_multiprocessor, check_threads))
    check_finite(const float* in, std::int64_t count, float* found_inf) {
  constexpr int n = 4, batch = 4;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * check_threads * n;
  std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * check_threads + threadIdx.x) * n;
  float zeros = 0;
  for (; i + (batch - 1) * stride + n <= count; i += batch * stride) {
    Raw<float, n> raw[batch];
#pragma unroll
    for (int b = 0; b < batch; ++b) raw[b] = load_raw<n>(in + i + b * stride);
#pragma unroll
    for (int b = 0; b < batch; ++b) add_zeros(zeros, raw[b]);
  }
  for (; i + n <= count; i += stride) add_zeros(zeros, load_raw<n>(in + i));
  for (; i < count; ++i) add_zeros(zeros, load_raw<1>(in + i));  // of the one thread that meets the end
  if (zeros != 0.0f) atomicExch(found_inf, 1.0f);
}

__global__ void update_one(float* found_inf, float* scale, std::int32_t* good_steps, std::int32_t* updates,
                           float growth, float backoff, std::int64_t growth_interval) {
  if (threadIdx.x != 0) return;
  const bool overflow = *found_inf != 0;
  *found_inf = 0;
  if (overflow) {
    *scale *= backoff;
    *good_steps = 0;
    return;
  }
  *updates += 1;
  *good_steps += 1;
  if (*good_steps < growth_interval) return;
  *good_steps = 0;
  const float grown = *scale * growth;
  if (grown * 0.0f == 0.0f) *scale = grown;  // it is finite
}

}  // namespace

void run(Stream stream, const backend::Bound<program::CheckFinite>& op, const backend::KernelContext& /*context*/) {
  const std::int64_t needed = ceil_div(ceil_div(op.in.count, 4), check_threads);
  const std::int64_t room = std::int64_t{device_limits().multiprocessors} * blocks_per_multiprocessor;
  launch("check_finite", check_finite, {std::min(needed, room), check_threads}, stream, op.in.f32(), op.in.count,
         op.found_inf.f32());
}

void run(Stream stream, const backend::Bound<program::UpdateScale>& op, const backend::KernelContext& /*context*/) {
  launch("update_scale", update_one, {1, 32}, stream, op.found_inf.f32(), op.scale.f32(),
         op.good_steps.as<std::int32_t>(), op.updates.as<std::int32_t>(), static_cast<float>(op.growth),
         static_cast<float>(op.backoff), op.growth_interval);
}

}  // namespace harness::cuda
