#include "backend/cuda/kernels/maps.cuh"
#include "backend/cuda/kernels/random.cuh"

namespace harness::cuda {
namespace {

template <class T>
struct InitializeOf {
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
struct RandomOf {
  T* out;
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
#pragma unroll
    for (int k = 0; k < n; ++k) v[k] = quick_normal(seed, static_cast<std::uint64_t>(i + k));
    cuda::store(out + i, v);
  }
};

}  // namespace

void initialize(Stream stream, const Initialize& op, Tensor out, int coordinate, std::uint64_t seed) {
  if (op.deviation == 0) return fill(stream, out, op.mean);
  const std::int64_t first_part = op.part == op.full ? 0 : coordinate * op.part;
  with_type(out.type, [&](auto tag) {
    using T = decltype(tag);
    const InitializeOf<T> operation{out.as<T>(),
                                    op.part * op.inner,
                                    op.full * op.inner,
                                    op.first_index + first_part * op.inner,
                                    op.mean,
                                    op.deviation,
                                    seed};
    launch_flat("initialize", stream, operation, op.outer * op.part * op.inner);
  });
}

void fill_random(Stream stream, Tensor out, std::uint64_t seed) {
  with_type(out.type, [&](auto tag) {
    using T = decltype(tag);
    launch_flat("fill_random", stream, RandomOf<T>{out.as<T>(), seed}, out.count);
  });
}

}  // namespace harness::cuda
