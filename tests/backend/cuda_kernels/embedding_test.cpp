#include "backend/cpu/kernels.h"
#include "backend/cuda/kernels.h"
#include "buffers.h"

namespace harness::test {
namespace {

class Embeddings : public PerType {};
INSTANTIATE_TEST_SUITE_P(Types, Embeddings, both_types(), type_name);

struct Shape {
  std::int64_t rows, width, sequence;
};
constexpr Shape shapes[] = {{1, 1, 1}, {24, 64, 8}, {24, 83, 8}, {12, 2056, 12}, {20, 5000, 5}};
constexpr std::int64_t shard_rows = 40;

TEST_P(Embeddings, Forward) {
  for (const Shape s : shapes) {
    for (const std::int64_t first : {std::int64_t{0}, shard_rows}) {
      for (const bool with_positions : {false, true}) {
        const Buffer tokens = integers(s.rows, 1, 0, 2 * shard_rows), words = random(type(), shard_rows * s.width, 2),
                     positions = random(type(), s.sequence * s.width, 3);
        Buffer out(type(), s.rows * s.width), wanted = out;
        Embedding op;
        op.rows = s.rows, op.width = s.width, op.sequence = s.sequence, op.shard.rows = shard_rows;
        const Tensor p = with_positions ? positions.tensor() : Tensor{};
        cuda::embedding(nullptr, tokens, words, p, out, op, first);
        cpu::embedding(tokens, words, p, wanted, op, first);
        EXPECT_TRUE(close(out, wanted, limit())) << s.rows << " x " << s.width << " from " << first;
      }
    }
  }
}

TEST_P(Embeddings, Backward) {
  for (const Shape s : shapes) {
    for (const std::int64_t first : {std::int64_t{0}, shard_rows}) {
      for (const bool accumulate : {false, true}) {
        const Buffer tokens = integers(s.rows, 1, 0, 2 * shard_rows), dout = random(type(), s.rows * s.width, 2);
        Buffer dwords = random(DType::f32, shard_rows * s.width, 3), wanted_words = dwords;
        const std::int64_t n = s.sequence * s.width;
        Buffer dpositions = accumulate ? random(DType::f32, n, 4) : Buffer(DType::f32, n),
               wanted_positions = dpositions;
        EmbeddingBackward op;
        op.rows = s.rows, op.width = s.width, op.sequence = s.sequence, op.shard.rows = shard_rows;
        op.accumulate_positions = accumulate;
        cuda::embedding_backward(nullptr, tokens, dout, dwords, dpositions, op, first);
        cpu::embedding_backward(tokens, dout, wanted_words, wanted_positions, op, first);
        EXPECT_TRUE(close(dwords, wanted_words, 1e-5)) << s.rows << " x " << s.width << " from " << first;
        EXPECT_TRUE(close(dpositions, wanted_positions, 1e-5)) << s.rows << " x " << s.width;
      }
    }
  }
}

TEST_P(Embeddings, BackwardWithoutPositions) {
  const Buffer tokens = integers(6, 1, 0, shard_rows), dout = random(type(), 6 * 16, 2);
  Buffer dwords = random(DType::f32, shard_rows * 16, 3), wanted = dwords, positions(DType::f32, 3 * 16);
  EmbeddingBackward op;
  op.rows = 6, op.width = 16, op.sequence = 3, op.shard.rows = shard_rows;
  cuda::embedding_backward(nullptr, tokens, dout, dwords, {}, op, 0);
  cpu::embedding_backward(tokens, dout, wanted, positions, op, 0);
  EXPECT_TRUE(close(dwords, wanted, 1e-5));
}

}  // namespace
}  // namespace harness::test
