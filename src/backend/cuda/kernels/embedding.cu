#include "backend/cuda/kernels/kernels.h"
#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/kernels/vectors.cuh"

namespace harness::cuda {
namespace {

constexpr int row_threads = 256;

// A block takes one row.
template <class T, int n>
__global__ void __launch_bounds__(row_threads)
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

// A block takes one position of all sequences, and some of the columns: dout is read once. With position_ids, a
// position may occur in any row: its gradients are added up in memory, which was zeroed where they are not kept.
template <class T, int n>
__global__ void __launch_bounds__(row_threads)
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

}  // namespace

void run(Stream stream, const backend::Bound<program::Embedding>& op, const backend::KernelContext& context) {
  // Each position counts once in the sum over the shards.
  const backend::Tensor positions = context.at[op.shard.axis] == 0 ? op.positions : backend::Tensor{};
  backend::with_type(op.out.type, [&](auto tag) {
    using T = decltype(tag);
    const auto start = [&](auto kernel, int n) {
      launch("embedding", kernel, {op.rows, threads_for(ceil_div(op.width, n), row_threads)}, stream, op.tokens.i32(),
             op.position_ids.i32(), op.words.as<const T>(), positions.as<const T>(), op.out.as<T>(), op.width,
             op.sequence, backend::first_row(op.shard, context.at), op.shard.rows);
    };
    constexpr int n = lanes_of<T>;
    op.width % n == 0 ? start(embedding_row<T, n>, n) : start(embedding_row<T, 1>, 1);
  });
}

void run(Stream stream, const backend::Bound<program::EmbeddingBackward>& op, const backend::KernelContext& context) {
  if (op.position_ids && op.dpositions && !op.accumulate_positions)
    run(stream, backend::Bound<program::Fill>{op.dpositions, 0}, context);
  backend::with_type(op.dout.type, [&](auto tag) {
    using T = decltype(tag);
    const auto start = [&](auto kernel, int n) {
      const int threads = threads_for(ceil_div(op.width, n), row_threads);
      const std::int64_t tiles = ceil_div(ceil_div(op.width, n), threads);
      launch("embedding_backward", kernel, {op.sequence * tiles, threads}, stream, op.tokens.i32(),
             op.position_ids.i32(), op.dout.as<const T>(), op.dwords.f32(), op.dpositions.f32(), op.rows, op.width,
             op.sequence, backend::first_row(op.shard, context.at), op.shard.rows, op.accumulate_positions, tiles);
    };
    constexpr int n = lanes_of<T>;
    op.width % n == 0 ? start(embedding_backward_position<T, n>, n) : start(embedding_backward_position<T, 1>, 1);
  });
}

}  // namespace harness::cuda
