#include "backend/cuda/kernels/launch.cuh"

namespace harness::cuda {
namespace {

// The first two words of Philox-4x32-10 on (key, counter), stream 0; see base/random.h.
__device__ __forceinline__ uint2 philox_pair(std::uint64_t key, std::uint64_t counter) {
  auto x0 = static_cast<std::uint32_t>(counter), x1 = static_cast<std::uint32_t>(counter >> 32);
  std::uint32_t x2 = 0, x3 = 0;
  auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * x0, p1 = std::uint64_t{0xCD9E8D57} * x2;
    x0 = static_cast<std::uint32_t>(p1 >> 32) ^ x1 ^ k0;
    x1 = static_cast<std::uint32_t>(p1);
    x2 = static_cast<std::uint32_t>(p0 >> 32) ^ x3 ^ k1;
    x3 = static_cast<std::uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return make_uint2(x0, x1);
}

// philox_normal() of base/random.h.
__device__ __forceinline__ double exact_normal(std::uint64_t key, std::uint64_t index) {
  const uint2 x = philox_pair(key, index);
  const double u = ((x.x >> 8) + 0.5) / 16777216.0, v = ((x.y >> 8) + 0.5) / 16777216.0;
  return sqrt(-2.0 * log(u)) * cospi(2.0 * v);
}

// exact_normal() in single precision with fast intrinsics: off by up to about 1e-3 where u is close to 1.
__device__ __forceinline__ float quick_normal(std::uint64_t key, std::uint64_t index) {
  const uint2 x = philox_pair(key, index);
  const float u = (static_cast<float>(x.x >> 8) + 0.5f) * 0x1p-24f,
              v = (static_cast<float>(x.y >> 8) + 0.5f) * 0x1p-24f;
  return sqrtf(fmaxf(-2.0f * __logf(u), 0.0f)) * __cosf(6.28318531f * (v - 0.5f)) * -1.0f;
}

template <class T>
struct InitializeMap {
  T* out;
  std::int64_t block;       // part * inner: elements that are contiguous in the global tensor
  std::int64_t full_block;  // full * inner: the stride of these blocks there
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

// Four 8-bit floats per word.
template <bool is_e4m3>
struct RandomFp8Map {
  std::uint32_t* out;
  std::uint64_t seed;
  float deviation;
  static constexpr int lanes = 4;
  template <int n>
  struct In {};
  template <int n>
  __device__ __forceinline__ In<n> load(std::int64_t) const {
    return {};
  }
  __device__ __forceinline__ std::uint32_t word(std::int64_t i) const {
    const auto normal = [&](int k) {
      return deviation * quick_normal(seed, static_cast<std::uint64_t>(i) * 4 + static_cast<std::uint64_t>(k));
    };
    const std::uint32_t low = fp8_pair<is_e4m3>(normal(0), normal(1)), high = fp8_pair<is_e4m3>(normal(2), normal(3));
    return low | high << 16;
  }
  template <int n>
  __device__ __forceinline__ void store(std::int64_t i, const In<n>&) const {
    if constexpr (n == lanes) {
      store_as(out + i, make_uint4(word(i), word(i + 1), word(i + 2), word(i + 3)));
    } else {
      store_as(out + i, word(i));
    }
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
  if (program::is_fp8(out.type)) {
    auto* words = out.as<std::uint32_t>();
    const auto start = [&](const auto& map) { launch_flat("fill_random", stream, map, out.count / 4); };
    return out.type == program::DType::e4m3 ? start(RandomFp8Map<true>{words, seed, deviation})
                                            : start(RandomFp8Map<false>{words, seed, deviation});
  }
  backend::with_type(out.type, [&](auto tag) {
    using T = decltype(tag);
    launch_flat("fill_random", stream, RandomMap<T>{out.as<T>(), seed, deviation}, out.count);
  });
}

}  // namespace harness::cuda
