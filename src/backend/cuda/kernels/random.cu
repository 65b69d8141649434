#include "backend/cuda/kernels/maps.cuh"
#include "backend/cuda/kernels/random.cuh"

namespace harness::cuda {
namespace {

template <class T>
struct InitializeMap {
  T* out;
  std::int64_t block;       // part * inner: elements that follow each other in the global tensor
  std::int64_t full_block;  // full * inner: from one such block to the next, there
  std::int64_t first_index;
  double mean, deviation;
  std::uint64_t seed;
  static constexpr int lanes = lanes_of<T>;
  template <int n>
  struct In {};
  template <int n>
  __device__ __forceinline__ In<n> load(std::int64_t) const {
    return {};
  }
  template <int n>
  __device__ __forceinline__ void store(std::int64_t i, const In<n>&) const {
    float v[n];
#pragma unroll 1
    for (int k = 0; k < n; ++k) {
      const std::int64_t at = i + k, index = first_index + at / block * full_block + at % block;
      v[k] = static_cast<float>(mean + deviation * exact_normal(seed, static_cast<std::uint64_t>(index)));
    }
    cuda::store(out + i, v);
  }
};

template <class T>
struct RandomMap {
  T* out;
  std::uint64_t seed;
  float deviation;
  static constexpr int lanes = lanes_of<T>;
  template <int n>
  struct In {};
  template <int n>
  __device__ __forceinline__ In<n> load(std::int64_t) const {
    return {};
  }
  template <int n>
  __device__ __forceinline__ void store(std::int64_t i, const In<n>&) const {
    float v[n];
#pragma unroll
    for (int k = 0; k < n; ++k) v[k] = deviation * quick_normal(seed, static_cast<std::uint64_t>(i + k));
    cuda::store(out + i, v);
  }
};

}  // namespace

void run(Stream stream, const backend::Bound<program::Initialize>& op, const backend::KernelContext& context) {
  if (op.deviation == 0) return run(stream, backend::Bound<program::Fill>{op.out, op.mean}, context);
  const std::int64_t first_part = op.part == op.full ? 0 : context.at[op.axis] * op.part;
  backend::with_type(op.out.type, [&](auto tag) {
    using T = decltype(tag);
    const InitializeMap<T> operation{
        op.out.as<T>(), op.part * op.inner, op.full * op.inner, op.first_index + first_part * op.inner,
        op.mean,        op.deviation,       context.seed};
    launch_flat("initialize", stream, operation, op.outer * op.part * op.inner);
  });
}

void fill_random(Stream stream, backend::Tensor out, std::uint64_t seed, float deviation) {
  backend::with_type(out.type, [&](auto tag) {
    using T = decltype(tag);
    launch_flat("fill_random", stream, RandomMap<T>{out.as<T>(), seed, deviation}, out.count);
  });
}

}  // namespace harness::cuda
