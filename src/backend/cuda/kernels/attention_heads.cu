#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/kernels/reductions.cuh"
#include "backend/cuda/kernels/vectors.cuh"

namespace harness::cuda {
namespace {

// Work per (row, head): a few neighbouring threads of one warp take the head's elements.
constexpr int head_threads = 256;

struct Heads {
  std::int64_t rows, heads, query_length, head_dim;
  int lanes;  // threads per head: a power of two up to 32
};

struct Place {
  std::int64_t item;   // row * heads + head: where its elements start, in units of head_dim
  std::int64_t stats;  // [batch, heads, query_length]
  int lane;
  bool valid;
};

__device__ __forceinline__ Place place_of(const Heads& s) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * head_threads + threadIdx.x;
  Place p;
  p.item = thread / s.lanes;
  p.lane = static_cast<int>(thread % s.lanes);
  const std::int64_t row = p.item / s.heads, head = p.item % s.heads;
  p.stats = (row / s.query_length * s.heads + head) * s.query_length + row % s.query_length;
  p.valid = row < s.rows;
  return p;
}

template <class T, int n>
__global__ void __launch_bounds__(head_threads) delta_heads(Heads s, const T* out, const T* dout, float* delta) {
  const Place p = place_of(s);
  float total = 0;
  if (p.valid) {
    for (std::int64_t c = p.lane * n; c < s.head_dim; c += s.lanes * n) {
      float v[n], d[n];
      load(out + p.item * s.head_dim + c, v);
      load(dout + p.item * s.head_dim + c, d);
#pragma unroll
      for (int k = 0; k < n; ++k) total += v[k] * d[k];
    }
  }
  total = group_sum(total, s.lanes);
  if (p.valid && p.lane == 0) delta[p.stats] = total;
}

Heads heads_of(const program::AttentionShape& shape, int n) {
  Heads s{shape.batch * shape.query_length, shape.heads, shape.query_length, shape.head_dim, 1};
  while (s.lanes < 32 && s.lanes * n < shape.head_dim) s.lanes *= 2;
  return s;
}

template <class Kernel, class... Arguments>
void launch_heads(const char* name, Stream stream, Kernel kernel, int n, const program::AttentionShape& shape,
                  Arguments... arguments) {
  const Heads s = heads_of(shape, n);
  launch(name, kernel, {ceil_div(s.rows * s.heads * s.lanes, head_threads), head_threads}, stream, s, arguments...);
}

}  // namespace

void attention_delta(Stream stream, backend::Tensor out, backend::Tensor dout, backend::Tensor delta,
                     const program::AttentionShape& shape) {
  backend::with_type(out.type, [&](auto tag) {
    using T = decltype(tag);
    constexpr int n = lanes_of<T>;
    const bool whole = shape.head_dim % n == 0;
    launch_heads("attention_delta", stream, whole ? delta_heads<T, n> : delta_heads<T, 1>, whole ? n : 1, shape,
                 out.as<const T>(), dout.as<const T>(), delta.f32());
  });
}

}  // namespace harness::cuda
