#pragma once

#include <cstdint>
#include <cstring>

#if defined(__AVX512BF16__) || defined(__F16C__)
#include <immintrin.h>
#endif

#include "base/floats.h"

// Vectors of the compiler target's width, by GCC's and Clang's vector extension. Only kernels include this file.
#pragma GCC diagnostic ignored "-Wpsabi"  // all functions here are inlined: no vector crosses an ABI

namespace harness::cpu::simd {

#if defined(__AVX512F__)
inline constexpr std::int64_t lanes = 16;
#elif defined(__AVX__)
inline constexpr std::int64_t lanes = 8;
#else
inline constexpr std::int64_t lanes = 4;
#endif

typedef float Vec __attribute__((vector_size(lanes * 4)));
typedef std::int32_t IntVec __attribute__((vector_size(lanes * 4)));
typedef std::uint32_t UintVec __attribute__((vector_size(lanes * 4)));
typedef std::uint16_t HalfVec __attribute__((vector_size(lanes * 2)));

#define HARNESS_INLINE inline __attribute__((always_inline))

HARNESS_INLINE Vec splat(float x) {
  return Vec{} + x;
}

HARNESS_INLINE Vec load(const float* p) {
  Vec v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
HARNESS_INLINE Vec load(const bf16* p) {
  HalfVec h;
  std::memcpy(&h, p, sizeof h);
  return (Vec)(__builtin_convertvector(h, UintVec) << 16);
}
HARNESS_INLINE void store(float* p, Vec v) {
  std::memcpy(p, &v, sizeof v);
}
HARNESS_INLINE void store(bf16* p, Vec v) {
#if defined(__AVX512BF16__)
  const __m256bh h = _mm512_cvtneps_pbh((__m512)v);
  std::memcpy(p, &h, sizeof h);
#else
  const UintVec u = (UintVec)v;
  const UintVec rounded = u + 0x7fffu + ((u >> 16) & 1u);
  const UintVec bits = v == v ? rounded : (u | 0x400000u);  // a NaN stays a NaN
  const HalfVec h = __builtin_convertvector(bits >> 16, HalfVec);
  std::memcpy(p, &h, sizeof h);
#endif
}
HARNESS_INLINE Vec load(const f16* p) {
#if defined(__AVX512F__)
  const __m256i h = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return (Vec)_mm512_maskz_cvtph_ps(0xffff, h);  // without a mask, GCC 12 warns of its own header
#elif defined(__F16C__)
  return (Vec)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#else
  Vec v;
  for (std::int64_t i = 0; i < lanes; ++i) v[i] = to_float(p[i]);
  return v;
#endif
}
HARNESS_INLINE void store(f16* p, Vec v) {
#if defined(__AVX512F__)
  const __m256i h = _mm512_maskz_cvtps_ph(0xffff, (__m512)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  std::memcpy(p, &h, sizeof h);
#elif defined(__F16C__)
  const __m128i h = _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  std::memcpy(p, &h, sizeof h);
#else
  for (std::int64_t i = 0; i < lanes; ++i) p[i] = to_f16(v[i]);
#endif
}

/// Loads the first n < lanes elements and sets the other lanes to `other`.
template <class T>
HARNESS_INLINE Vec load_tail(const T* p, std::int64_t n, float other = 0) {
  Vec v = splat(other);
  for (std::int64_t i = 0; i < lanes - 1 && i < n; ++i) v[i] = to_float(p[i]);  // n alone gives the compiler no bound
  return v;
}
HARNESS_INLINE void store_one(float* p, float x) {
  *p = x;
}
HARNESS_INLINE void store_one(bf16* p, float x) {
  *p = to_bf16(x);
}
HARNESS_INLINE void store_one(f16* p, float x) {
  *p = to_f16(x);
}
template <class T>
HARNESS_INLINE void store_tail(T* p, Vec v, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) store_one(p + i, v[i]);
}

HARNESS_INLINE Vec max(Vec a, Vec b) {
  return a > b ? a : b;
}  // b if either is NaN
HARNESS_INLINE float sum(Vec v) {
  float total = 0;
  for (std::int64_t width = lanes / 2; width >= 1; width /= 2) {
    for (std::int64_t i = 0; i < width; ++i) v[i] += v[i + width];
  }
  total = v[0];
  return total;
}
HARNESS_INLINE float largest(Vec v) {
  float m = v[0];
  for (std::int64_t i = 1; i < lanes; ++i) m = v[i] > m ? v[i] : m;
  return m;
}

// get() and put() move n <= lanes elements; get() sets the other lanes to `other`. over() splits [first, last) into
// such pieces, all but the last of them full vectors.
template <class T>
HARNESS_INLINE Vec get(const T* p, std::int64_t n, float other = 0) {
  return n == lanes ? load(p) : load_tail(p, n, other);
}
template <class T>
HARNESS_INLINE void put(T* p, Vec v, std::int64_t n) {
  n == lanes ? store(p, v) : store_tail(p, v, n);
}
template <class F>
HARNESS_INLINE void over(std::int64_t first, std::int64_t last, F&& f) {
  std::int64_t i = first;
  for (; i + lanes <= last; i += lanes) f(i, lanes);
  if (i < last) f(i, last - i);
}

/// e^x to about one unit in the last place; 0 below -87.3, e^88.7 above 88.7; NaN stays NaN. Reduction to
/// [-ln 2 / 2, ln 2 / 2] and a polynomial of degree 6 (coefficients of the Cephes library's expf, S. Moshier, 1989).
HARNESS_INLINE Vec exp(Vec x) {
  const Vec low = splat(-87.33654f), high = splat(88.7f);
  const IntVec under = x < low;
  x = x < low ? low : x;
  x = x > high ? high : x;
  const Vec magic = splat(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer
  const Vec shifted = x * 1.44269504088896341f + magic;
  const Vec n = shifted - magic;
  Vec r = x - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  Vec p = splat(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  const IntVec exponent = (IntVec)shifted << 23;  // the integer's low bits end up in the exponent field
  const Vec result = (Vec)((IntVec)p + exponent);
  const Vec kept = x == x ? result : x;  // NaN stays NaN
  return under ? splat(0) : kept;
}

}  // namespace harness::cpu::simd
