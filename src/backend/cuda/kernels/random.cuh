#pragma once

#include "backend/cuda/kernels/platform.cuh"

namespace harness::cuda {

/// The first two words of Philox-4x32-10 on (key, counter), stream 0: base/random.h says more.
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

/// philox_normal() of base/random.h.
__device__ __forceinline__ double exact_normal(std::uint64_t key, std::uint64_t index) {
  const uint2 x = philox_pair(key, index);
  const double u = ((x.x >> 8) + 0.5) / 16777216.0, v = ((x.y >> 8) + 0.5) / 16777216.0;
  return sqrt(-2.0 * log(u)) * cospi(2.0 * v);
}

/// As above in single precision, by the fast functions: up to some 1e-3 away where u is next to 1.
__device__ __forceinline__ float quick_normal(std::uint64_t key, std::uint64_t index) {
  const uint2 x = philox_pair(key, index);
  const float u = (static_cast<float>(x.x >> 8) + 0.5f) * 0x1p-24f,
              v = (static_cast<float>(x.y >> 8) + 0.5f) * 0x1p-24f;
  return sqrtf(fmaxf(-2.0f * __logf(u), 0.0f)) * __cosf(6.28318531f * (v - 0.5f)) * -1.0f;
}

}  // namespace harness::cuda
