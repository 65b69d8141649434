#include "backend/cuda/kernels/maps.cuh"
#include "backend/cuda/kernels/reductions.cuh"

namespace harness::cuda {
namespace {

// How many keys row `row` of all score matrices sees.
__device__ __forceinline__ std::int64_t visible_keys(std::int64_t row, std::int64_t query_length,
                                                     std::int64_t key_length, bool causal) {
  if (!causal) return key_length;
  const std::int64_t keys = row % query_length + 1;
  return keys < key_length ? keys : key_length;
}

constexpr int score_threads = 256;

// A block takes one row; the second reading is from the caches.
template <class T, int n>
__global__ void __launch_bounds__(score_threads)
    softmax_row(T* scores, float* stats, std::int64_t query_length, std::int64_t key_length, float scale, bool causal) {
  HARNESS_SHARED(float2, parts, max_warps);
  const std::int64_t row = blockIdx.x, visible = visible_keys(row, query_length, key_length, causal);
  T* const x = scores + row * key_length;
  ExponentialSum own;
  for (std::int64_t c = threadIdx.x * n; c < visible; c += blockDim.x * n) {
    float v[n];
    load(x + c, v);
#pragma unroll
    for (int k = 0; k < n; ++k) v[k] = c + k < visible ? v[k] * scale : __uint_as_float(0xff800000u);
    own.add(v);
  }
  const ExponentialSum all = block_join(own, parts);
  if (threadIdx.x == 0) stats[row] = all.maximum + logf(all.sum);
  const float factor = 1.0f / all.sum;
  for (std::int64_t c = threadIdx.x * n; c < key_length; c += blockDim.x * n) {
    float v[n] = {};
    if (c < visible) load(x + c, v);
#pragma unroll
    for (int k = 0; k < n; ++k) v[k] = c + k < visible ? quick_exp(v[k] * scale - all.maximum) * factor : 0.0f;
    store(x + c, v);
  }
}

template <class T>
struct ProbabilitiesOf {
  T* scores;
  const float* stats;
  std::int64_t query_length, key_length;
  float scale;
  bool causal;
  static constexpr int lanes = lanes_of<T>;
  struct Column {};
  template <int n>
  struct In {
    Raw<T, n> x;
    float stats;
  };

  template <int n>
  __device__ __forceinline__ Column column(std::int64_t) const {
    return {};
  }
  template <int n>
  __device__ __forceinline__ In<n> load(std::int64_t row, std::int64_t c) const {
    return {load_raw<n>(scores + row * key_length + c), stats[row]};
  }
  template <int n>
  __device__ __forceinline__ void store(std::int64_t row, std::int64_t c, Column, const In<n>& in) const {
    const std::int64_t visible = visible_keys(row, query_length, key_length, causal);
    float v[n];
    unpack(in.x, v);
#pragma unroll
    for (int k = 0; k < n; ++k) v[k] = c + k < visible ? quick_exp(v[k] * scale - in.stats) : 0.0f;
    cuda::store(scores + row * key_length + c, v);
  }
};

template <class T>
struct SoftmaxBackwardOf {
  const T* probabilities;
  T* dprobabilities;
  const float* delta;
  std::int64_t key_length;
  float scale;
  static constexpr int lanes = lanes_of<T>;
  struct Column {};
  template <int n>
  struct In {
    Raw<T, n> p, dp;
    float delta;
  };

  template <int n>
  __device__ __forceinline__ Column column(std::int64_t) const {
    return {};
  }
  template <int n>
  __device__ __forceinline__ In<n> load(std::int64_t row, std::int64_t c) const {
    const std::int64_t at = row * key_length + c;
    return {load_raw<n>(probabilities + at), load_raw<n>(dprobabilities + at), delta[row]};
  }
  template <int n>
  __device__ __forceinline__ void store(std::int64_t row, std::int64_t c, Column, const In<n>& in) const {
    float p[n], d[n];
    unpack(in.p, p);
    unpack(in.dp, d);
#pragma unroll
    for (int k = 0; k < n; ++k) d[k] = scale * p[k] * (d[k] - in.delta);
    cuda::store(dprobabilities + row * key_length + c, d);
  }
};

}  // namespace

void attention_softmax(Stream stream, backend::Tensor scores, backend::Tensor stats, std::int64_t matrices,
                       std::int64_t query_length, std::int64_t key_length, double scale, bool causal) {
  backend::with_type(scores.type, [&](auto tag) {
    using T = decltype(tag);
    const auto start = [&](auto kernel, int n) {
      launch("attention_softmax", kernel,
             {matrices * query_length, threads_for(ceil_div(key_length, n), score_threads)}, stream, scores.as<T>(),
             stats.f32(), query_length, key_length, scale, causal);
    };
    constexpr int n = lanes_of<T>;
    key_length % n == 0 ? start(softmax_row<T, n>, n) : start(softmax_row<T, 1>, 1);
  });
}

void attention_probabilities(Stream stream, backend::Tensor scores, backend::Tensor stats, std::int64_t matrices,
                             std::int64_t query_length, std::int64_t key_length, double scale, bool causal) {
  backend::with_type(scores.type, [&](auto tag) {
    using T = decltype(tag);
    const ProbabilitiesOf<T> operation{scores.as<T>(), stats.f32(), query_length, key_length, static_cast<float>(scale),
                                       causal};
    launch_rows("attention_probabilities", stream, operation, matrices * query_length, key_length);
  });
}

void attention_softmax_backward(Stream stream, backend::Tensor probabilities, backend::Tensor dprobabilities,
                                backend::Tensor delta, std::int64_t matrices, std::int64_t query_length,
                                std::int64_t key_length, double scale) {
  backend::with_type(probabilities.type, [&](auto tag) {
    using T = decltype(tag);
    const SoftmaxBackwardOf<T> operation{probabilities.as<const T>(), dprobabilities.as<T>(), delta.f32(), key_length,
                                         static_cast<float>(scale)};
    launch_rows("attention_softmax_backward", stream, operation, matrices * query_length, key_length);
  });
}

}  // namespace harness::cuda
