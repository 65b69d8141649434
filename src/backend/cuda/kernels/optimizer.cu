#include <algorithm>

#include "backend/cuda/kernels/launch.cuh"

namespace harness::cuda {
namespace {

constexpr int adamw_threads = 256, adamw_blocks = 5;  // per multiprocessor

template <class T>
struct AdamWFlat {
  float *master, *moment1, *moment2;
  const float* gradient;
  T* weights;
  const std::int32_t* counter;
  const float *learning_rate, *scale, *skip;
  std::int64_t count;
  double beta1, beta2, epsilon, weight_decay;
};

struct Factors {
  float decay, beta1, beta2, step_size, root_correction, epsilon, of_gradient;
};

template <class T, int n>
__device__ __forceinline__ void update(const AdamWFlat<T>& t, const Factors& f, std::int64_t i) {
  const Raw<float, n> w_raw = load_raw<n>(t.master + i), m_raw = load_raw<n>(t.moment1 + i),
                      v_raw = load_raw<n>(t.moment2 + i), g_raw = load_raw<n>(t.gradient + i);
  float w[n], m[n], v[n], g[n];
  unpack(w_raw, w);
  unpack(m_raw, m);
  unpack(v_raw, v);
  unpack(g_raw, g);
#pragma unroll
  for (int k = 0; k < n; ++k) {
    const float gradient = g[k] * f.of_gradient;
    m[k] += (gradient - m[k]) * (1 - f.beta1);
    v[k] = v[k] * f.beta2 + gradient * gradient * (1 - f.beta2);
    w[k] = w[k] * f.decay - f.step_size * m[k] / (sqrtf(v[k]) * f.root_correction + f.epsilon);
  }
  store(t.master + i, w);
  store(t.moment1 + i, m);
  store(t.moment2 + i, v);
  if (t.weights) store(t.weights + i, w);
}

template <class T>
__global__ void __launch_bounds__(adamw_threads, resident_blocks(adamw_blocks, adamw_threads))
    adamw_flat(AdamWFlat<T> t) {
  if (t.skip && *t.skip != 0) return;
  HARNESS_SHARED(Factors, shared, 1);
  if (threadIdx.x == 0) {  // double precision is slow on some devices: once per block
    const double step = *t.counter + 1.0, rate = *t.learning_rate;
    shared[0].decay = static_cast<float>(1 - rate * t.weight_decay);
    shared[0].beta1 = static_cast<float>(t.beta1);
    shared[0].beta2 = static_cast<float>(t.beta2);
    shared[0].step_size = static_cast<float>(rate / (1 - pow(t.beta1, step)));
    shared[0].root_correction = static_cast<float>(1 / sqrt(1 - pow(t.beta2, step)));
    shared[0].epsilon = static_cast<float>(t.epsilon);
    shared[0].of_gradient = t.scale ? 1 / *t.scale : 1.0f;
  }
  __syncthreads();
  const Factors f = shared[0];
  constexpr int n = 4;
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * adamw_threads + threadIdx.x;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * adamw_threads * n;
  std::int64_t i = thread * n;
  for (; i + n <= t.count; i += stride) update<T, n>(t, f, i);
  if (i < t.count) {  // only the thread at the end
    for (; i < t.count; ++i) update<T, 1>(t, f, i);
  }
}

// ---- loss scaling ---------------------------------------------------------------------------------------------------

constexpr int check_threads = 256, check_blocks = 8;  // per multiprocessor

// 0 times a finite number is 0; 0 times infinity or NaN is NaN.
template <int n>
__device__ __forceinline__ void add_zeros(float& zeros, const Raw<float, n>& raw) {
  float v[n];
  unpack(raw, v);
#pragma unroll
  for (int k = 0; k < n; ++k) zeros += v[k] * 0.0f;
}

__global__ void __launch_bounds__(check_threads, resident_blocks(check_blocks, check_threads))
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
  for (; i < count; ++i) add_zeros(zeros, load_raw<1>(in + i));  // only in the thread at the end
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
  if (grown * 0.0f == 0.0f) *scale = grown;  // if finite
}

}  // namespace

void run(Stream stream, const backend::Bound<program::AdamW>& op, const backend::KernelContext& /*context*/) {
  backend::with_type(op.weights ? op.weights.type : program::DType::f32, [&](auto tag) {
    using T = decltype(tag);
    const std::int64_t needed = ceil_div(ceil_div(op.master.count, 4), adamw_threads);
    const std::int64_t room = std::int64_t{device_limits().multiprocessors} * adamw_blocks;
    const AdamWFlat<T> t{op.master.f32(),
                         op.moment1.f32(),
                         op.moment2.f32(),
                         op.gradient.f32(),
                         op.weights.as<T>(),
                         op.counter.i32(),
                         op.learning_rate.f32(),
                         op.scale.f32(),
                         op.skip.f32(),
                         op.master.count,
                         op.beta1,
                         op.beta2,
                         op.epsilon,
                         op.weight_decay};
    launch("adamw", adamw_flat<T>, {std::min(needed, room), adamw_threads}, stream, t);
  });
}

void run(Stream stream, const backend::Bound<program::CheckFinite>& op, const backend::KernelContext& /*context*/) {
  const std::int64_t needed = ceil_div(ceil_div(op.in.count, 4), check_threads);
  const std::int64_t room = std::int64_t{device_limits().multiprocessors} * check_blocks;
  launch("check_finite", check_finite, {std::min(needed, room), check_threads}, stream, op.in.f32(), op.in.count,
         op.found_inf.f32());
}

void run(Stream stream, const backend::Bound<program::UpdateScale>& op, const backend::KernelContext& /*context*/) {
  launch("update_scale", update_one, {1, 32}, stream, op.found_inf.f32(), op.scale.f32(),
         op.good_steps.as<std::int32_t>(), op.updates.as<std::int32_t>(), static_cast<float>(op.growth),
         static_cast<float>(op.backoff), op.growth_interval);
}

}  // namespace harness::cuda
