#include "backend/cpu/kernels.h"
#include "backend/cuda/kernels/kernels.h"
#include "buffers.h"

namespace harness::test {
namespace {

class Embeddings : public PerType {};
INSTANTIATE_TEST_SUITE_P(Types, Embeddings, both_types(), type_name);

struct EmbeddingShape {
  std::int64_t rows, width, sequence;
};
constexpr EmbeddingShape embedding_shapes[] = {{1, 1, 1}, {24, 64, 8}, {24, 83, 8}, {12, 2056, 12}, {20, 5000, 5}};
constexpr std::int64_t shard_rows = 40;
constexpr program::Shard shard{program::Axis::tensor, shard_rows};

backend::KernelContext on_shard(int coordinate) {
  backend::KernelContext context;
  context.at[shard.axis] = coordinate;
  return context;
}

TEST_P(Embeddings, Forward) {
  for (const EmbeddingShape s : embedding_shapes) {
    for (const int coordinate : {0, 1}) {
      for (const bool with_positions : {false, true}) {
        const Buffer tokens = integers(s.rows, 1, 0, 2 * shard_rows), words = random(type(), shard_rows * s.width, 2),
                     positions = random(type(), s.sequence * s.width, 3);
        Buffer out(type(), s.rows * s.width), wanted = out;
        const auto to = [&](const Buffer& result) {
          return backend::Bound<program::Embedding>{
              tokens,     words, with_positions ? positions.tensor() : backend::Tensor{}, result, s.rows, s.width,
              s.sequence, shard};
        };
        cuda::run(nullptr, to(out), on_shard(coordinate));
        cpu::run(to(wanted), on_shard(coordinate));
        EXPECT_TRUE(close(out, wanted, limit())) << s.rows << " x " << s.width << ", shard " << coordinate;
      }
    }
  }
}

TEST_P(Embeddings, Backward) {
  for (const EmbeddingShape s : embedding_shapes) {
    for (const int coordinate : {0, 1}) {
      for (const bool accumulate : {false, true}) {
        const Buffer tokens = integers(s.rows, 1, 0, 2 * shard_rows), dout = random(type(), s.rows * s.width, 2);
        Buffer dwords = random(program::DType::f32, shard_rows * s.width, 3), wanted_words = dwords;
        const std::int64_t n = s.sequence * s.width;
        Buffer dpositions = accumulate ? random(program::DType::f32, n, 4) : Buffer(program::DType::f32, n),
               wanted_positions = dpositions;
        const auto to = [&](const Buffer& of_words, const Buffer& of_positions) {
          return backend::Bound<program::EmbeddingBackward>{tokens,  dout,       of_words, of_positions, s.rows,
                                                            s.width, s.sequence, shard,    accumulate};
        };
        cuda::run(nullptr, to(dwords, dpositions), on_shard(coordinate));
        cpu::run(to(wanted_words, wanted_positions), on_shard(coordinate));
        EXPECT_TRUE(close(dwords, wanted_words, 1e-5)) << s.rows << " x " << s.width << ", shard " << coordinate;
        EXPECT_TRUE(close(dpositions, wanted_positions, 1e-5)) << s.rows << " x " << s.width;
      }
    }
  }
}

TEST_P(Embeddings, BackwardWithoutPositions) {
  const Buffer tokens = integers(6, 1, 0, shard_rows), dout = random(type(), 6 * 16, 2);
  Buffer dwords = random(program::DType::f32, shard_rows * 16, 3), wanted = dwords,
         positions(program::DType::f32, 3 * 16);
  cuda::run(nullptr, backend::Bound<program::EmbeddingBackward>{tokens, dout, dwords, {}, 6, 16, 3, shard});
  cpu::run(backend::Bound<program::EmbeddingBackward>{tokens, dout, wanted, positions, 6, 16, 3, shard});
  EXPECT_TRUE(close(dwords, wanted, 1e-5));
}

}  // namespace
}  // namespace harness::test
