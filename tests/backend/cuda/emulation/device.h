#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numbers>

// CUDA's built-in names, as far as the kernels use them, for a host compiler. Included by emulated kernels only.

#define __global__
#define __device__ inline
#define __forceinline__
#define __launch_bounds__(...)

struct uint2 {
  unsigned x, y;
};
struct uint4 {
  unsigned x, y, z, w;
};
struct float2 {
  float x, y;
};
inline uint2 make_uint2(unsigned x, unsigned y) {
  return {x, y};
}
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}
inline float2 make_float2(float x, float y) {
  return {x, y};
}

namespace harness::emulation {

struct Index {
  unsigned x;
};
struct Indices {
  Index thread, block, block_size, grid_size;
};
/// The indices of the running thread.
Indices& indices();

/// The memory of one __shared__ declaration (`site`), the same for all threads of the block.
void* shared(const void* site, std::size_t bytes);
void* dynamic_shared();

void block_barrier();
/// Returns the value that lane (own lane ^ lane_mask) of the warp passes.
std::uint64_t exchange(std::uint64_t mine, int lane_mask);

std::uint64_t nanoseconds();

[[noreturn]] void misaligned(const void* p, std::size_t bytes);
/// Fails if p lies in the block's shared memory, which instructions for global memory cannot access.
void check_global(const void* p);
[[noreturn]] void partial_mask(unsigned mask);

template <class Word>
Word load(const void* p) {
  if (reinterpret_cast<std::uintptr_t>(p) % sizeof(Word) != 0) misaligned(p, sizeof(Word));
  Word word;
  std::memcpy(&word, p, sizeof word);
  return word;
}
template <class Word>
void store(void* p, const Word& word) {
  if (reinterpret_cast<std::uintptr_t>(p) % sizeof(Word) != 0) misaligned(p, sizeof(Word));
  std::memcpy(p, &word, sizeof word);
}

template <class Word>
void store_global(void* p, const Word& word) {
  check_global(p);
  store(p, word);
}

}  // namespace harness::emulation

#define threadIdx (::harness::emulation::indices().thread)
#define blockIdx (::harness::emulation::indices().block)
#define blockDim (::harness::emulation::indices().block_size)
#define gridDim (::harness::emulation::indices().grid_size)

inline void __syncthreads() {
  harness::emulation::block_barrier();
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask) {
  if (mask != 0xffffffffu) harness::emulation::partial_mask(mask);
  static_assert(sizeof(T) <= 8);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = harness::emulation::exchange(bits, lane_mask);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline unsigned __ballot_sync(unsigned mask, bool is_true) {
  unsigned bits = (is_true ? 1U : 0U) << threadIdx.x % 32;
  for (int step = 16; step > 0; step /= 2) bits |= __shfl_xor_sync(mask, bits, step);
  return bits;
}
inline int __popc(unsigned bits) {
  return std::popcount(bits);
}
template <class T>
T atomicAdd(T* to, T value) {
  return std::atomic_ref<T>(*to).fetch_add(value);
}

inline float atomicExch(float* to, float value) {
  return std::atomic_ref<float>(*to).exchange(value);
}

inline float __uint_as_float(std::uint32_t u) {
  return std::bit_cast<float>(u);
}
inline std::uint32_t __float_as_uint(float x) {
  return std::bit_cast<std::uint32_t>(x);
}
inline float __expf(float x) {
  return std::exp(x);
}
inline float __logf(float x) {
  return std::log(x);
}
inline float __cosf(float x) {
  return std::cos(x);
}
inline float __fdividef(float a, float b) {
  return a / b;
}
inline float rsqrtf(float x) {
  return 1 / std::sqrt(x);
}
inline double cospi(double x) {
  return std::cos(std::numbers::pi * x);
}
inline void __nanosleep(unsigned) {}
