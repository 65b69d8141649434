#pragma once

// The language of the kernels: CUDA, or a host emulation of its execution model with the same names (for tests on
// machines without a GPU). Nothing else in this folder distinguishes the two, except launch.cuh and the few places
// where only one of them has an instruction.
#ifdef HARNESS_EMULATED_CUDA
#include "backend/cuda/emulation/device.h"

#define HARNESS_SHARED(type, name, count) \
  static const char site_of_##name = 0;   \
  type* const name = static_cast<type*>(::harness::emulation::shared(&site_of_##name, sizeof(type) * (count)))
#else
#include <cuda_runtime.h>

/// An array in the block's shared memory, for a kernel's outermost scope.
#define HARNESS_SHARED(type, name, count) __shared__ type name[count]
#endif

#include <cstdint>
#include <type_traits>

#include "base/floats.h"

namespace harness::cuda {

/// Returns how many of `wished` blocks fit on a multiprocessor of the architecture being compiled, for launch bounds
/// (CUDA C++ Programming Guide, technical specifications per compute capability).
constexpr int resident_blocks(int wished, int threads) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 750
  constexpr int most_threads = 1024;
#elif defined(__CUDA_ARCH__) && (__CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1200)
  constexpr int most_threads = 1536;
#else
  constexpr int most_threads = 2048;
#endif
  return wished * threads <= most_threads ? wished : most_threads / threads;
}

/// The dynamic shared memory of the block.
__device__ __forceinline__ float* dynamic_shared() {
#ifdef HARNESS_EMULATED_CUDA
  return static_cast<float*>(emulation::dynamic_shared());
#else
  extern __shared__ float4 dynamic_shared_memory[];
  return reinterpret_cast<float*>(dynamic_shared_memory);
#endif
}

/// Loads 4, 8 or 16 bytes (std::uint32_t, uint2, uint4) at once from an address aligned to that size.
template <class Word>
__device__ __forceinline__ Word load_as(const void* p) {
#ifdef HARNESS_EMULATED_CUDA
  return emulation::load<Word>(p);
#else
  return *static_cast<const Word*>(p);
#endif
}
/// Stores to global memory only: the kernel fails on an address in shared memory. The 16-byte store is inline assembly:
/// if several rows are stored under separate conditions, nvcc splits a plain 16-byte store into four of 4 bytes (CUDA
/// 13.0, sm_75 to sm_90), with four times the requests to L2.
template <class Word>
__device__ __forceinline__ void store_as(void* p, Word word) {
#ifdef HARNESS_EMULATED_CUDA
  emulation::store_global(p, word);
#else
  if constexpr (sizeof(Word) == 16) {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(p)), "r"(word.x),
                 "r"(word.y), "r"(word.z), "r"(word.w)
                 : "memory");
  } else {
    *static_cast<Word*>(p) = word;
  }
#endif
}
/// Stores to global or shared memory.
template <class Word>
__device__ __forceinline__ void store_anywhere(void* p, Word word) {
#ifdef HARNESS_EMULATED_CUDA
  emulation::store(p, word);
#else
  *static_cast<Word*>(p) = word;
#endif
}

/// Accesses global data that is not read again soon; the caches evict it first.
template <class Word>
__device__ __forceinline__ Word load_last_use(const void* p) {
#ifdef HARNESS_EMULATED_CUDA
  emulation::check_global(p);
  return emulation::load<Word>(p);
#else
  return __ldcs(static_cast<const Word*>(p));
#endif
}
template <class Word>
__device__ __forceinline__ void store_for_later(void* p, Word word) {
#ifdef HARNESS_EMULATED_CUDA
  emulation::store_global(p, word);
#else
  __stcs(static_cast<Word*>(p), word);
#endif
}

/// Prefetches a line of global memory into L2.
__device__ __forceinline__ void prefetch(const void* p) {
#ifndef HARNESS_EMULATED_CUDA
  asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
#else
  emulation::check_global(p);
#endif
}

/// to[0..3] += {a, b, c, d}, each element atomic by itself; `to` is aligned to 16 bytes.
__device__ __forceinline__ void atomic_add_4(float* to, float a, float b, float c, float d) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  atomicAdd(reinterpret_cast<float4*>(to), make_float4(a, b, c, d));
#else
  atomicAdd(to, a);
  atomicAdd(to + 1, b);
  atomicAdd(to + 2, c);
  atomicAdd(to + 3, d);
#endif
}

/// Packs two floats as bf16, rounded to nearest, `low` in the lower half.
__device__ __forceinline__ std::uint32_t bf16_pair(float low, float high) {
#ifdef HARNESS_EMULATED_CUDA
  return static_cast<std::uint32_t>(to_bf16(low).bits) | static_cast<std::uint32_t>(to_bf16(high).bits) << 16;
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800  // no such instruction
  const auto bits = [](float x) -> std::uint32_t { return nearest_bf16_bits(__float_as_uint(x)); };
  return bits(low) | bits(high) << 16;
#else
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#endif
}

/// Packs two floats as 8-bit floats (base/floats.h), `low` in the lower half.
template <bool is_e4m3>
__device__ __forceinline__ std::uint16_t fp8_pair(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  std::uint16_t pair;
  if constexpr (is_e4m3) {
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
  }
  return pair;
#else
  constexpr Fp8Format format = is_e4m3 ? e4m3_format : e5m2_format;
  return static_cast<std::uint16_t>(nearest_fp8(format, __float_as_uint(low)) |
                                    nearest_fp8(format, __float_as_uint(high)) << 8);
#endif
}

/// Packs two floats as f16, rounded to nearest, `low` in the lower half.
__device__ __forceinline__ std::uint32_t f16_pair(float low, float high) {
#ifdef HARNESS_EMULATED_CUDA
  return static_cast<std::uint32_t>(to_f16(low).bits) | static_cast<std::uint32_t>(to_f16(high).bits) << 16;
#else
  std::uint16_t of_low, of_high;  // converting both at once needs sm_80
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(of_low) : "f"(low));
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(of_high) : "f"(high));
  return static_cast<std::uint32_t>(of_low) | static_cast<std::uint32_t>(of_high) << 16;
#endif
}
__device__ __forceinline__ float float_of_f16(std::uint16_t bits) {
#ifdef HARNESS_EMULATED_CUDA
  return to_float(f16{bits});
#else
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
#endif
}

/// Packs two floats as T (bf16 or f16) and unpacks them, `low` in the lower half.
template <class T>
__device__ __forceinline__ std::uint32_t half_pair(float low, float high) {
  if constexpr (std::is_same_v<T, bf16>) {
    return bf16_pair(low, high);
  } else {
    return f16_pair(low, high);
  }
}
template <class T>
__device__ __forceinline__ float low_half(std::uint32_t pair) {
  if constexpr (std::is_same_v<T, bf16>) {
    return __uint_as_float(pair << 16);
  } else {
    return float_of_f16(static_cast<std::uint16_t>(pair));
  }
}
template <class T>
__device__ __forceinline__ float high_half(std::uint32_t pair) {
  if constexpr (std::is_same_v<T, bf16>) {
    return __uint_as_float(pair & 0xffff0000u);
  } else {
    return float_of_f16(static_cast<std::uint16_t>(pair >> 16));
  }
}

/// Fast exp(x), 0 where it is below 2^-126. __expf() takes twice the instructions, to scale such results.
__device__ __forceinline__ float quick_exp(float x) {
#ifdef HARNESS_EMULATED_CUDA
  return __expf(x);
#else
  constexpr float log2_e = 1.4426950408889634f;
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * log2_e));
  return y;
#endif
}

/// Reads the device clock, which runs independently of the GPU's frequency.
__device__ __forceinline__ std::uint64_t nanoseconds() {
#ifdef HARNESS_EMULATED_CUDA
  return emulation::nanoseconds();
#else
  std::uint64_t t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
#endif
}

}  // namespace harness::cuda
