#pragma once

#include "backend/cuda/kernels/platform.cuh"

namespace harness::cuda {

// A thread accesses n consecutive elements, by 16-byte accesses if n elements fill them.

/// Elements of T in 16 bytes.
template <class T>
constexpr int lanes_of = 16 / static_cast<int>(sizeof(T));

/// n elements in their memory format, which takes fewer registers than floats until they are used.
template <class T, int n>
struct Raw {
  static constexpr int words = n * static_cast<int>(sizeof(T)) / 4;
  static_assert(n * sizeof(T) % 4 == 0);
  std::uint32_t word[words];
};
template <class T>
requires(sizeof(T) == 2) struct Raw<T, 1> {
  std::uint16_t half;
};

enum class Use : std::uint8_t { again, last };

template <int n, Use use = Use::again, class T>
__device__ __forceinline__ Raw<T, n> load_raw(const T* p) {
  Raw<T, n> out;
  if constexpr (n == 1 && sizeof(T) == 2) {
    out.half = p->bits;
  } else if constexpr (Raw<T, n>::words == 1) {
    out.word[0] = load_as<std::uint32_t>(p);
  } else if constexpr (Raw<T, n>::words == 2) {
    const uint2 w = load_as<uint2>(p);
    out.word[0] = w.x;
    out.word[1] = w.y;
  } else {
#pragma unroll
    for (int k = 0; k < Raw<T, n>::words; k += 4) {
      const T* from = p + k / 4 * lanes_of<T>;
      const uint4 w = use == Use::last ? load_last_use<uint4>(from) : load_as<uint4>(from);
      out.word[k] = w.x;
      out.word[k + 1] = w.y;
      out.word[k + 2] = w.z;
      out.word[k + 3] = w.w;
    }
  }
  return out;
}

template <Use use = Use::again, class T, int n>
__device__ __forceinline__ void store_raw(T* p, const Raw<T, n>& v) {
  if constexpr (n == 1 && sizeof(T) == 2) {
    p->bits = v.half;
  } else if constexpr (Raw<T, n>::words == 1) {
    store_as(p, v.word[0]);
  } else if constexpr (Raw<T, n>::words == 2) {
    store_as(p, make_uint2(v.word[0], v.word[1]));
  } else {
#pragma unroll
    for (int k = 0; k < Raw<T, n>::words; k += 4) {
      T* to = p + k / 4 * lanes_of<T>;
      const uint4 w = make_uint4(v.word[k], v.word[k + 1], v.word[k + 2], v.word[k + 3]);
      use == Use::last ? store_for_later(to, w) : store_as(to, w);
    }
  }
}

template <class T, int n>
__device__ __forceinline__ Raw<T, n> zero_raw() {
  Raw<T, n> out;
  if constexpr (n == 1 && sizeof(T) == 2) {
    out.half = 0;
  } else {
#pragma unroll
    for (int k = 0; k < Raw<T, n>::words; ++k) out.word[k] = 0;
  }
  return out;
}

template <class T, int n>
__device__ __forceinline__ void unpack(const Raw<T, n>& raw, float (&v)[n]) {
  if constexpr (sizeof(T) == 4) {
#pragma unroll
    for (int k = 0; k < n; ++k) v[k] = __uint_as_float(raw.word[k]);
  } else if constexpr (n == 1) {
    v[0] = low_half<T>(raw.half);
  } else {
#pragma unroll
    for (int k = 0; k < n / 2; ++k) {
      v[2 * k] = low_half<T>(raw.word[k]);
      v[2 * k + 1] = high_half<T>(raw.word[k]);
    }
  }
}

template <class T, int n>
__device__ __forceinline__ Raw<T, n> pack(const float (&v)[n]) {
  Raw<T, n> raw;
  if constexpr (sizeof(T) == 4) {
#pragma unroll
    for (int k = 0; k < n; ++k) raw.word[k] = __float_as_uint(v[k]);
  } else if constexpr (n == 1) {
    raw.half = static_cast<std::uint16_t>(half_pair<T>(v[0], 0.0f));
  } else {
#pragma unroll
    for (int k = 0; k < n / 2; ++k) raw.word[k] = half_pair<T>(v[2 * k], v[2 * k + 1]);
  }
  return raw;
}

template <int n, class T>
__device__ __forceinline__ void load(const T* p, float (&v)[n]) {
  unpack(load_raw<n>(p), v);
}
template <int n, class T>
__device__ __forceinline__ void store(T* p, const float (&v)[n]) {
  store_raw(p, pack<T>(v));
}
/// Stores to shared memory, or to global memory if the kernel does not know which of the two it has.
template <int n>
__device__ __forceinline__ void store_anywhere(float* p, const float (&v)[n]) {
  if constexpr (n % 4 == 0) {
#pragma unroll
    for (int k = 0; k < n; k += 4) {
      store_anywhere(static_cast<void*>(p + k), make_uint4(__float_as_uint(v[k]), __float_as_uint(v[k + 1]),
                                                           __float_as_uint(v[k + 2]), __float_as_uint(v[k + 3])));
    }
  } else {
#pragma unroll
    for (int k = 0; k < n; ++k) p[k] = v[k];
  }
}
template <class T>
__device__ __forceinline__ float load_one(const T* p) {
  float v[1];
  load(p, v);
  return v[0];
}

/// Calls f(c, the n elements at x + c) for the pieces c of a row that fall to this thread of the block; n divides the
/// width, which is far below 2^31. Issues `batch` loads before the first use, because the compiler does not hoist loads
/// on its own.
template <int batch, int n, class T, class F>
__device__ __forceinline__ void over_row(const T* x, int width, const F& f) {
  const int stride = static_cast<int>(blockDim.x) * n;
  for (int c = static_cast<int>(threadIdx.x) * n; c < width; c += batch * stride) {
    Raw<T, n> raw[batch];
#pragma unroll
    for (int b = 0; b < batch; ++b) {
      if (c + b * stride < width) raw[b] = load_raw<n>(x + c + b * stride);
    }
#pragma unroll
    for (int b = 0; b < batch; ++b) {
      if (c + b * stride >= width) continue;
      float v[n];
      unpack(raw[b], v);
      f(c + b * stride, v);
    }
  }
}

/// v += the n elements at p.
template <int n, class T>
__device__ __forceinline__ void add_to(float (&v)[n], const Raw<T, n>& raw) {
  float x[n];
  unpack(raw, x);
#pragma unroll
  for (int k = 0; k < n; ++k) v[k] += x[k];
}

}  // namespace harness::cuda
