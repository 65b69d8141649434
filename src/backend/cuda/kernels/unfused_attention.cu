#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/kernels/reductions.cuh"

namespace harness::cuda {
namespace {

// Determines which keys the rows of score matrices see.
struct Sight {
  std::int64_t query_length, key_length;
  bool causal;
  const std::int32_t* position_ids;  // of the rows, within their documents; null: one document
};

// The keys [begin, end) that row `row` of all matrices sees.
struct Seen {
  std::int64_t begin, end;
  __device__ __forceinline__ bool has(std::int64_t key) const { return key >= begin && key < end; }
};

__device__ __forceinline__ Seen seen_by(std::int64_t row, const Sight& sight) {
  if (!sight.causal) return {0, sight.key_length};
  const std::int64_t at = row % sight.query_length, end = at < sight.key_length ? at + 1 : sight.key_length;
  const std::int64_t begin = sight.position_ids ? at - sight.position_ids[at] : 0;
  return {begin > 0 ? begin : 0, end};
}

constexpr int score_threads = 256;

// One block per row; the second read comes from the caches.
template <class T, int n>
__global__ void __launch_bounds__(score_threads) softmax_row(T* scores, float* stats, Sight sight, float scale) {
  HARNESS_SHARED(float2, parts, max_warps);
  const std::int64_t row = blockIdx.x, key_length = sight.key_length;
  const Seen seen = seen_by(row, sight);
  T* const x = scores + row * key_length;
  ExponentialSum own;
  for (std::int64_t c = seen.begin / n * n + threadIdx.x * n; c < seen.end; c += blockDim.x * n) {
    float v[n];
    load(x + c, v);
#pragma unroll
    for (int k = 0; k < n; ++k) v[k] = seen.has(c + k) ? v[k] * scale : __uint_as_float(0xff800000u);
    own.add(v);
  }
  const ExponentialSum all = block_join(own, parts);
  if (threadIdx.x == 0) stats[row] = all.maximum + logf(all.sum);
  const float factor = 1.0f / all.sum;
  for (std::int64_t c = threadIdx.x * n; c < key_length; c += blockDim.x * n) {
    float v[n] = {};
    if (c + n > seen.begin && c < seen.end) load(x + c, v);
#pragma unroll
    for (int k = 0; k < n; ++k) v[k] = seen.has(c + k) ? quick_exp(v[k] * scale - all.maximum) * factor : 0.0f;
    store(x + c, v);
  }
}

template <class T>
struct ProbabilitiesOf {
  T* scores;
  const float* stats;
  Sight sight;
  float scale;
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
    return {load_raw<n>(scores + row * sight.key_length + c), stats[row]};
  }
  template <int n>
  __device__ __forceinline__ void store(std::int64_t row, std::int64_t c, Column, const In<n>& in) const {
    const Seen seen = seen_by(row, sight);
    float v[n];
    unpack(in.x, v);
#pragma unroll
    for (int k = 0; k < n; ++k) v[k] = seen.has(c + k) ? quick_exp(v[k] * scale - in.stats) : 0.0f;
    cuda::store(scores + row * sight.key_length + c, v);
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

// Per (row, head): a few neighbouring threads of one warp share the head's elements.
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

}  // namespace

void attention_softmax(Stream stream, backend::Tensor scores, backend::Tensor stats, backend::Tensor position_ids,
                       const program::AttentionShape& shape, double scale) {
  const std::int64_t rows = shape.heads * shape.query_length, keys = shape.key_length;
  const Sight sight{shape.query_length, keys, shape.causal, position_ids.i32()};
  with_lanes(scores.type, keys, [&]<class T, int n>(Lanes<T, n>) {
    launch("attention_softmax", softmax_row<T, n>, {rows, threads_for(ceil_div(keys, n), score_threads)}, stream,
           scores.as<T>(), stats.f32(), sight, scale);
  });
}

void attention_probabilities(Stream stream, backend::Tensor scores, backend::Tensor stats, backend::Tensor position_ids,
                             const program::AttentionShape& shape, double scale) {
  const Sight sight{shape.query_length, shape.key_length, shape.causal, position_ids.i32()};
  backend::with_type(scores.type, [&](auto tag) {
    using T = decltype(tag);
    const ProbabilitiesOf<T> operation{scores.as<T>(), stats.f32(), sight, static_cast<float>(scale)};
    launch_rows("attention_probabilities", stream, operation, shape.heads * shape.query_length, shape.key_length);
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

void attention_delta(Stream stream, backend::Tensor out, backend::Tensor dout, backend::Tensor delta,
                     const program::AttentionShape& shape) {
  Heads heads{shape.batch * shape.query_length, shape.heads, shape.query_length, shape.head_dim, 1};
  with_lanes(out.type, shape.head_dim, [&]<class T, int n>(Lanes<T, n>) {
    while (heads.lanes < 32 && heads.lanes * n < shape.head_dim) heads.lanes *= 2;
    launch("attention_delta", delta_heads<T, n>,
           {ceil_div(heads.rows * heads.heads * heads.lanes, head_threads), head_threads}, stream, heads,
           out.as<const T>(), dout.as<const T>(), delta.f32());
  });
}

}  // namespace harness::cuda
