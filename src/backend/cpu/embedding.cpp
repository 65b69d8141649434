#include <algorithm>

#include "backend/cpu/kernels.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/simd.h"

namespace harness::cpu {
namespace {

template <class T>
HARNESS_INLINE void add_row(float* to, const T* from, std::int64_t width) {
  simd::over(0, width, [&](std::int64_t i, std::int64_t n) {
    simd::put(to + i, simd::get(to + i, n) + simd::get(from + i, n), n);
  });
}

std::int64_t position_of(const auto& op, std::int64_t row) {
  return op.position_ids ? op.position_ids.i32()[row] : row % op.sequence;
}

}  // namespace

void run(const backend::Bound<program::Embedding>& op, const backend::KernelContext& context) {
  const std::int64_t width = op.width, first = backend::first_row(op.shard, context.at);
  // The shards' outputs are summed, so only one of them adds the positions.
  const backend::Tensor positions = context.at[op.shard.axis] == 0 ? op.positions : backend::Tensor{};
  const std::int32_t* token = op.tokens.i32();
  backend::with_type(op.out.type, [&](auto tag) {
    using T = decltype(tag);
    parallel_rows(op.rows, width, [&](std::int64_t t) {
      const std::int64_t local = token[t] - first;
      const bool here = local >= 0 && local < op.shard.rows;
      const T* word = here ? op.words.as<const T>() + local * width : nullptr;
      const T* place = positions ? positions.as<const T>() + position_of(op, t) * width : nullptr;
      T* to = op.out.as<T>() + t * width;
      simd::over(0, width, [&](std::int64_t i, std::int64_t n) {
        simd::Vec v{};
        if (word) v += simd::get(word + i, n);
        if (place) v += simd::get(place + i, n);
        simd::put(to + i, v, n);
      });
    });
  });
}

void run(const backend::Bound<program::EmbeddingBackward>& op, const backend::KernelContext& context) {
  const std::int64_t width = op.width, first = backend::first_row(op.shard, context.at);
  const std::int32_t* token = op.tokens.i32();
  backend::with_type(op.dout.type, [&](auto tag) {
    using T = decltype(tag);
    const T* from = op.dout.as<const T>();
    // A token may occur in any row, so each thread takes a range of columns and walks all rows in order.
    parallel_ranges(width, 64, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t t = 0; t < op.rows; ++t) {
        const std::int64_t local = token[t] - first;
        if (local < 0 || local >= op.shard.rows) continue;
        add_row(op.dwords.f32() + local * width + begin, from + t * width + begin, end - begin);
      }
    });
    if (!op.dpositions) return;
    if (op.position_ids) {  // a position, too, may occur in any row
      parallel_ranges(width, 64, [&](std::int64_t begin, std::int64_t end, int) {
        float* to = op.dpositions.f32() + begin;
        for (std::int64_t p = 0; p < op.sequence && !op.accumulate_positions; ++p)
          std::fill_n(to + p * width, end - begin, 0.0f);
        for (std::int64_t t = 0; t < op.rows; ++t)
          add_row(to + position_of(op, t) * width, from + t * width + begin, end - begin);
      });
      return;
    }
    parallel_rows(op.sequence, width, [&](std::int64_t p) {
      float* to = op.dpositions.f32() + p * width;
      if (!op.accumulate_positions) std::fill_n(to, width, 0.0f);
      for (std::int64_t t = p; t < op.rows; t += op.sequence) add_row(to, from + t * width, width);
    });
  });
}

}  // namespace harness::cpu
