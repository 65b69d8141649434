#include "backend/cuda/kernels/launch.cuh"

namespace harness::cuda {
namespace {

// GELU in its tanh form is x * s(2u) with the logistic function s and u = sqrt(2/pi) (x + 0.044715 x^3), since
// (1 + tanh u) / 2 = s(2u).
constexpr float two_root = 1.5957691216057308f, cubic = 0.044715f;

__device__ __forceinline__ float logistic_of_gelu(float x) {
  return __fdividef(1.0f, 1.0f + __expf(-two_root * (x + cubic * (x * x * x))));
}

template <class T>
struct GeluMap {
  const T* in;
  T* out;
  static constexpr int lanes = lanes_of<T>;
  template <int n>
  using In = Raw<T, n>;

  template <int n>
  __device__ __forceinline__ In<n> load(std::int64_t i) const {
    return load_raw<n>(in + i);
  }
  template <int n>
  __device__ __forceinline__ void store(std::int64_t i, const In<n>& raw) const {
    float x[n];
    unpack(raw, x);
#pragma unroll
    for (int k = 0; k < n; ++k) x[k] *= logistic_of_gelu(x[k]);
    cuda::store(out + i, x);
  }
};

template <class T>
struct GeluBackwardMap {
  const T* in;
  T* data;
  static constexpr int lanes = lanes_of<T>;
  template <int n>
  struct In {
    Raw<T, n> x, d;
  };

  template <int n>
  __device__ __forceinline__ In<n> load(std::int64_t i) const {
    return {load_raw<n>(in + i), load_raw<n>(data + i)};
  }
  template <int n>
  __device__ __forceinline__ void store(std::int64_t i, const In<n>& raw) const {
    float x[n], d[n];
    unpack(raw.x, x);
    unpack(raw.d, d);
#pragma unroll
    for (int k = 0; k < n; ++k) {
      const float s = logistic_of_gelu(x[k]);
      d[k] *= s + x[k] * s * (1.0f - s) * (two_root * (1.0f + (3 * cubic) * (x[k] * x[k])));
    }
    cuda::store(data + i, d);
  }
};

__device__ __forceinline__ float logistic(float x) {
  return __fdividef(1.0f, 1.0f + __expf(-x));
}

// Each row holds a gate and an up half, `width` elements each.
template <class T>
struct SwiGluMap {
  const T* in;
  T* out;
  std::int64_t width;
  static constexpr int lanes = lanes_of<T>;
  template <int n>
  struct In {
    Raw<T, n> gate, up;
  };

  template <int n>
  __device__ __forceinline__ int column(std::int64_t) const {
    return 0;
  }
  template <int n>
  __device__ __forceinline__ In<n> load(std::int64_t row, std::int64_t c) const {
    const T* from = in + 2 * row * width + c;
    return {load_raw<n>(from), load_raw<n>(from + width)};
  }
  template <int n>
  __device__ __forceinline__ void store(std::int64_t row, std::int64_t c, int, const In<n>& raw) const {
    float gate[n], up[n];
    unpack(raw.gate, gate);
    unpack(raw.up, up);
#pragma unroll
    for (int k = 0; k < n; ++k) up[k] *= gate[k] * logistic(gate[k]);
    cuda::store(out + row * width + c, up);
  }
};

template <class T>
struct SwiGluBackwardMap {
  const T *in, *dout;
  T* din;
  std::int64_t width;
  static constexpr int lanes = lanes_of<T>;
  template <int n>
  struct In {
    Raw<T, n> gate, up, d;
  };

  template <int n>
  __device__ __forceinline__ int column(std::int64_t) const {
    return 0;
  }
  template <int n>
  __device__ __forceinline__ In<n> load(std::int64_t row, std::int64_t c) const {
    const T* from = in + 2 * row * width + c;
    return {load_raw<n>(from), load_raw<n>(from + width), load_raw<n>(dout + row * width + c)};
  }
  template <int n>
  __device__ __forceinline__ void store(std::int64_t row, std::int64_t c, int, const In<n>& raw) const {
    float gate[n], up[n], d[n];
    unpack(raw.gate, gate);
    unpack(raw.up, up);
    unpack(raw.d, d);
#pragma unroll
    for (int k = 0; k < n; ++k) {
      const float s = logistic(gate[k]), of_up = d[k] * gate[k] * s;
      gate[k] = d[k] * up[k] * s * (1.0f + gate[k] * (1.0f - s));
      up[k] = of_up;
    }
    T* to = din + 2 * row * width + c;
    cuda::store(to, gate);
    cuda::store(to + width, up);
  }
};

template <class T>
struct ResidualAddMap {
  const T *in, *bias, *residual;
  T* out;
  std::int64_t width;
  static constexpr int lanes = lanes_of<T>;
  template <int n>
  struct In {
    Raw<T, n> x, other;
  };

  template <int n>
  __device__ __forceinline__ Raw<T, n> column(std::int64_t c) const {
    return bias ? load_raw<n>(bias + c) : zero_raw<T, n>();
  }
  template <int n>
  __device__ __forceinline__ In<n> load(std::int64_t row, std::int64_t c) const {
    const std::int64_t at = row * width + c;
    return {load_raw<n>(in + at), residual ? load_raw<n>(residual + at) : zero_raw<T, n>()};
  }
  template <int n>
  __device__ __forceinline__ void store(std::int64_t row, std::int64_t c, const Raw<T, n>& of_column,
                                        const In<n>& raw) const {
    float v[n];
    unpack(raw.x, v);
    add_to(v, of_column);
    add_to(v, raw.other);
    cuda::store(out + row * width + c, v);
  }
};

}  // namespace

void run(Stream stream, const backend::Bound<program::Gelu>& op, const backend::KernelContext&) {
  backend::with_type(op.in.type, [&](auto tag) {
    using T = decltype(tag);
    launch_flat("gelu", stream, GeluMap<T>{op.in.as<const T>(), op.out.as<T>()}, op.in.count);
  });
}

void run(Stream stream, const backend::Bound<program::GeluBackward>& op, const backend::KernelContext&) {
  backend::with_type(op.in.type, [&](auto tag) {
    using T = decltype(tag);
    launch_flat("gelu_backward", stream, GeluBackwardMap<T>{op.in.as<const T>(), op.data.as<T>()}, op.in.count);
  });
}

void run(Stream stream, const backend::Bound<program::SwiGlu>& op, const backend::KernelContext&) {
  backend::with_type(op.in.type, [&](auto tag) {
    using T = decltype(tag);
    launch_rows("swiglu", stream, SwiGluMap<T>{op.in.as<const T>(), op.out.as<T>(), op.width}, op.rows, op.width);
  });
}

void run(Stream stream, const backend::Bound<program::SwiGluBackward>& op, const backend::KernelContext&) {
  backend::with_type(op.in.type, [&](auto tag) {
    using T = decltype(tag);
    const SwiGluBackwardMap<T> operation{op.in.as<const T>(), op.dout.as<const T>(), op.din.as<T>(), op.width};
    launch_rows("swiglu_backward", stream, operation, op.rows, op.width);
  });
}

void run(Stream stream, const backend::Bound<program::ResidualAdd>& op, const backend::KernelContext&) {
  backend::with_type(op.out.type, [&](auto tag) {
    using T = decltype(tag);
    const ResidualAddMap<T> operation{op.in.as<const T>(), op.bias.as<const T>(), op.residual.as<const T>(),
                                      op.out.as<T>(), op.width};
    launch_rows("residual_add", stream, operation, op.rows, op.width);
  });
}

void run(Stream stream, const backend::Bound<program::BiasAdd>& op, const backend::KernelContext& context) {
  run(stream,
      backend::Bound<program::ResidualAdd>{
          .in = op.data, .bias = op.bias, .out = op.data, .rows = op.rows, .width = op.width},
      context);
}

}  // namespace harness::cuda
