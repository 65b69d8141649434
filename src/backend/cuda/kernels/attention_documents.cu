#include <algorithm>

#include "backend/cuda/kernels/launch.cuh"

// Own kernels that fused attention to packed documents needs beside cuDNN's.
namespace harness::cuda {
namespace {

constexpr int document_threads = 256;

// Elements from one token to the next.
struct Strides {
  std::int64_t query, key, out, heads;
};

__device__ __forceinline__ void put(const DocumentTable& table, const Strides& strides, std::int64_t entry,
                                    std::int64_t token) {
  table.query[entry] = token * strides.query;
  table.key[entry] = token * strides.key;
  table.out[entry] = token * strides.out;
  table.stats[entry] = token * strides.heads;
}

// One block per sequence; each thread takes contiguous positions.
__global__ void __launch_bounds__(document_threads)
    find_in_sequence(const std::int32_t* position_ids, std::int64_t length, std::int64_t documents, Strides strides,
                     DocumentTable table) {
  HARNESS_SHARED(std::int64_t, begun, document_threads);
  const std::int64_t first_token = blockIdx.x * length, first_entry = blockIdx.x * documents;
  const std::int64_t share = (length + document_threads - 1) / document_threads;
  const std::int64_t from = threadIdx.x * share, to = from + share < length ? from + share : length;
  const auto begins = [&](std::int64_t i) { return i == 0 || position_ids[first_token + i] == 0; };
  std::int64_t own = 0;
  for (std::int64_t i = from; i < to; ++i) own += begins(i) ? 1 : 0;
  begun[threadIdx.x] = own;
  __syncthreads();
  std::int64_t number = 0, all = 0;
  for (int t = 0; t < document_threads; ++t) {
    if (t < static_cast<int>(threadIdx.x)) number += begun[t];
    all += begun[t];
  }
  for (std::int64_t i = from; i < to; ++i) {
    if (!begins(i)) continue;
    if (number < documents) put(table, strides, first_entry + number, first_token + i);
    ++number;
  }
  // Unused entries are empty, at the end of the sequence; the last block also writes the closing entry.
  const std::int64_t end = first_token + length, closing = blockIdx.x + 1 == gridDim.x ? 1 : 0;
  for (std::int64_t k = all + threadIdx.x; k < documents + closing; k += document_threads) {
    put(table, strides, first_entry + k, end);
  }
  if (closing != 0 && all > documents && threadIdx.x == 0) put(table, strides, first_entry + documents, end);
  __syncthreads();
  for (std::int64_t k = threadIdx.x; k < documents; k += document_threads) {
    const std::int64_t next = k + 1 < documents ? table.stats[first_entry + k + 1] : end * strides.heads;
    table.lengths[first_entry + k] = static_cast<std::int32_t>((next - table.stats[first_entry + k]) / strides.heads);
  }
}

template <bool by_token>
__global__ void __launch_bounds__(document_threads)
    move_stats(const float* from, float* to, std::int64_t count, std::int64_t heads, std::int64_t length) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * document_threads + threadIdx.x;
  if (i >= count) return;
  const std::int64_t token = i / heads, head = i % heads;
  const std::int64_t other = (token / length * heads + head) * length + token % length;
  to[by_token ? i : other] = from[by_token ? other : i];
}

void start_move(const char* name, void (*kernel)(const float*, float*, std::int64_t, std::int64_t, std::int64_t),
                Stream stream, const backend::Tensor& from, const backend::Tensor& to,
                const program::AttentionShape& shape) {
  const std::int64_t count = shape.batch * shape.query_length * shape.heads;
  launch(name, kernel, {ceil_div(count, document_threads), document_threads}, stream, from.f32(), to.f32(), count,
         shape.heads, shape.query_length);
}

}  // namespace

void find_documents(Stream stream, const backend::Tensor& position_ids, const program::AttentionShape& shape,
                    std::int64_t documents, const DocumentTable& table) {
  const Strides strides{shape.query_stride, shape.key_stride, shape.heads * shape.head_dim, shape.heads};
  launch("find_documents", find_in_sequence, {shape.batch, document_threads}, stream, position_ids.i32(),
         shape.query_length, documents, strides, table);
}

void stats_by_token(Stream stream, const backend::Tensor& by_head, const backend::Tensor& by_token,
                    const program::AttentionShape& shape) {
  start_move("stats_by_token", move_stats<true>, stream, by_head, by_token, shape);
}

void stats_by_head(Stream stream, const backend::Tensor& by_token, const backend::Tensor& by_head,
                   const program::AttentionShape& shape) {
  start_move("stats_by_head", move_stats<false>, stream, by_token, by_head, shape);
}

}  // namespace harness::cuda
