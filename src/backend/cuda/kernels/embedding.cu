#include <algorithm>
#include <cmath>

#include "backend/cuda/kernels/launch.cuh"

namespace harness::cuda {
namespace {

constexpr int embedding_threads = 256;

// One block per row.
template <class T, int n>
__global__ void __launch_bounds__(embedding_threads)
    embedding_row(const std::int32_t* tokens, const std::int32_t* position_ids, const T* words, const T* positions,
                  T* out, std::int64_t width, std::int64_t sequence, std::int64_t first, std::int64_t shard_rows) {
  const std::int64_t row = blockIdx.x, local = tokens[row] - first;
  const T* word = local >= 0 && local < shard_rows ? words + local * width : nullptr;
  const std::int64_t number = position_ids ? position_ids[row] : row % sequence;
  const T* position = positions ? positions + number * width : nullptr;
  for (std::int64_t c = threadIdx.x * n; c < width; c += blockDim.x * n) {
    float v[n] = {};
    if (word) load(word + c, v);
    if (position) add_to(v, load_raw<n>(position + c));
    store(out + row * width + c, v);
  }
}

template <int n>
__device__ __forceinline__ void atomic_add_to(float* to, const float (&v)[n]) {
  if constexpr (n == 1) {
    atomicAdd(to, v[0]);
  } else {
#pragma unroll
    for (int k = 0; k < n; k += 4) atomic_add_4(to + k, v[k], v[k + 1], v[k + 2], v[k + 3]);
  }
}

// Each block takes one position of all sequences and some of the columns, so dout is read once. With position_ids, a
// position may occur in any row, so its gradients accumulate in memory; run() zeroes it first unless it accumulates.
template <class T, int n>
__global__ void __launch_bounds__(embedding_threads)
    embedding_backward_position(const std::int32_t* tokens, const std::int32_t* position_ids, const T* dout,
                                float* dwords, float* dpositions, std::int64_t rows, std::int64_t width,
                                std::int64_t sequence, std::int64_t first, std::int64_t shard_rows,
                                bool accumulate_positions, int tiles) {
  const std::int64_t position = blockIdx.x / tiles;
  const std::int64_t c = (static_cast<std::int64_t>(blockIdx.x % tiles) * blockDim.x + threadIdx.x) * n;
  if (c >= width) return;
  float total[n] = {};
#pragma unroll 4
  for (std::int64_t row = position; row < rows; row += sequence) {
    float d[n];
    load(dout + row * width + c, d);
    const std::int64_t local = tokens[row] - first;
    if (local >= 0 && local < shard_rows) atomic_add_to(dwords + local * width + c, d);
    if (position_ids && dpositions) atomic_add_to(dpositions + position_ids[row] * width + c, d);
#pragma unroll
    for (int k = 0; k < n; ++k) total[k] += d[k];
  }
  if (position_ids || !dpositions) return;
  float* to = dpositions + position * width + c;
  if (accumulate_positions) add_to(total, load_raw<n>(to));
  store(to, total);
}

// ---- rotary positions -----------------------------------------------------------------------------------------------

constexpr int rope_threads = 256;

struct RopeShape {
  std::int64_t stride, sequence;
  int heads, head_dim;
  double step;  // of log2(frequency), from one pair to the next
  float sign;
};

// One block per row. A thread takes the same pair of several heads and computes angle, sine and cosine once for them,
// in f32 for every data type: bf16 cannot tell one late position from the next.
template <class T>
__global__ void __launch_bounds__(rope_threads) rope_row(T* data, const std::int32_t* position_ids, RopeShape s) {
  const std::int64_t row = blockIdx.x;
  const int half = s.head_dim / 2, pairs = half < static_cast<int>(blockDim.x) ? half : static_cast<int>(blockDim.x);
  const int lanes = static_cast<int>(blockDim.x) / pairs, lane = static_cast<int>(threadIdx.x) / pairs;
  if (lane >= lanes) return;
  const auto position = static_cast<float>(position_ids ? position_ids[row] : row % s.sequence);
  for (int i = static_cast<int>(threadIdx.x) % pairs; i < half; i += pairs) {
    const auto frequency = static_cast<float>(exp2(s.step * i));
    float sine, cosine;
    sincosf(position * frequency, &sine, &cosine);
    sine *= s.sign;
    for (int h = lane; h < s.heads; h += lanes) {
      T* const at = data + row * s.stride + static_cast<std::int64_t>(h) * s.head_dim + i;
      float a[1], b[1];
      load(at, a);
      load(at + half, b);
      const float turned[1] = {a[0] * cosine - b[0] * sine}, other[1] = {b[0] * cosine + a[0] * sine};
      store(at, turned);
      store(at + half, other);
    }
  }
}

}  // namespace

void run(Stream stream, const backend::Bound<program::Embedding>& op, const backend::KernelContext& context) {
  // Only coordinate 0 adds positions: each counts once in the sum over the shards.
  const backend::Tensor positions = context.at[op.shard.axis] == 0 ? op.positions : backend::Tensor{};
  with_lanes(op.out.type, op.width, [&]<class T, int n>(Lanes<T, n>) {
    launch("embedding", embedding_row<T, n>, {op.rows, threads_for(ceil_div(op.width, n), embedding_threads)}, stream,
           op.tokens.i32(), op.position_ids.i32(), op.words.as<const T>(), positions.as<const T>(), op.out.as<T>(),
           op.width, op.sequence, backend::first_row(op.shard, context.at), op.shard.rows);
  });
}

void run(Stream stream, const backend::Bound<program::EmbeddingBackward>& op, const backend::KernelContext& context) {
  if (op.position_ids && op.dpositions && !op.accumulate_positions)
    run(stream, backend::Bound<program::Fill>{op.dpositions, 0}, context);
  with_lanes(op.dout.type, op.width, [&]<class T, int n>(Lanes<T, n>) {
    const int threads = threads_for(ceil_div(op.width, n), embedding_threads);
    const std::int64_t tiles = ceil_div(ceil_div(op.width, n), threads);
    launch("embedding_backward", embedding_backward_position<T, n>, {op.sequence * tiles, threads}, stream,
           op.tokens.i32(), op.position_ids.i32(), op.dout.as<const T>(), op.dwords.f32(), op.dpositions.f32(), op.rows,
           op.width, op.sequence, backend::first_row(op.shard, context.at), op.shard.rows, op.accumulate_positions,
           tiles);
  });
}

void run(Stream stream, const backend::Bound<program::Rope>& op, const backend::KernelContext&) {
  const RopeShape s{op.stride,
                    op.sequence,
                    static_cast<int>(op.heads),
                    static_cast<int>(op.head_dim),
                    -2 * std::log2(op.theta) / static_cast<double>(op.head_dim),
                    op.backward ? -1.0f : 1.0f};
  backend::with_type(op.data.type, [&](auto tag) {
    using T = decltype(tag);
    launch("rope", rope_row<T>, {op.rows, threads_for(op.heads * op.head_dim / 2, rope_threads)}, stream,
           op.data.as<T>(), op.position_ids.i32(), s);
  });
}

}  // namespace harness::cuda
