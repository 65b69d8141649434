#include <vector>

#include "backend/cuda/kernels/kernels.h"
#include "buffers.h"

namespace harness::test {
namespace {

class AttentionParts : public PerType {};
INSTANTIATE_TEST_SUITE_P(Types, AttentionParts, both_types(), type_name);

program::AttentionShape shape_of(std::int64_t batch, std::int64_t heads, std::int64_t head_dim, std::int64_t length) {
  program::AttentionShape s;
  s.batch = batch;
  s.heads = heads;
  s.head_dim = head_dim;
  s.query_length = s.key_length = length;
  return s;
}
const std::vector<program::AttentionShape> head_shapes = {
    shape_of(1, 1, 8, 1), shape_of(2, 3, 64, 5), shape_of(2, 2, 20, 7), shape_of(1, 5, 33, 9), shape_of(1, 2, 384, 11)};

TEST_P(AttentionParts, Delta) {
  for (const program::AttentionShape& s : head_shapes) {
    const std::int64_t rows = s.batch * s.heads * s.query_length, n = rows * s.head_dim;
    const Buffer out = random(type(), n, 1), dout = random(type(), n, 2);
    Buffer delta(program::DType::f32, rows);
    std::vector<double> wanted(rows);
    for (std::int64_t b = 0; b < s.batch; ++b) {
      for (std::int64_t i = 0; i < s.query_length; ++i) {
        for (std::int64_t h = 0; h < s.heads; ++h) {
          for (std::int64_t d = 0; d < s.head_dim; ++d) {
            const std::int64_t at = ((b * s.query_length + i) * s.heads + h) * s.head_dim + d;
            wanted[(b * s.heads + h) * s.query_length + i] += out[at] * dout[at];
          }
        }
      }
    }
    cuda::attention_delta(nullptr, out, dout, delta, s);
    EXPECT_TRUE(close(delta, wanted.data(), 1e-5)) << s.head_dim;
  }
}

struct Scores {
  std::int64_t matrices, queries, keys;
  bool causal;
  std::int64_t document = 0;  // the length of each in a sequence, but for the last; 0: there is one

  std::int64_t first_seen(std::int64_t row) const { return document > 0 ? row % queries / document * document : 0; }
  std::int64_t behind_seen(std::int64_t row) const { return causal ? std::min(keys, row % queries + 1) : keys; }
  bool sees(std::int64_t row, std::int64_t key) const { return key >= first_seen(row) && key < behind_seen(row); }
};
// Square; fewer and more keys than queries; not for vectors; more keys than one turn of a block; several documents.
constexpr Scores score_shapes[] = {
    {1, 1, 1, true},      {3, 16, 16, true},    {3, 16, 16, false},     {2, 13, 37, true},   {2, 37, 13, true},
    {2, 9, 21, false},    {1, 7, 4096, true},   {1, 3, 4096, false},    {1, 300, 304, true}, {1, 1100, 1027, true},
    {3, 16, 16, true, 5}, {1, 37, 37, true, 1}, {2, 300, 300, true, 77}};

program::AttentionShape shape_of(const Scores& s) {
  program::AttentionShape shape = shape_of(1, s.matrices, 8, s.queries);
  shape.key_length = s.keys;
  shape.causal = s.causal;
  return shape;
}

Buffer position_ids_of(const Scores& s) {
  Buffer ids(program::DType::i32, s.document > 0 ? s.queries : 0);
  for (std::int64_t i = 0; s.document > 0 && i < s.queries; ++i) ids.set(i, static_cast<double>(i % s.document));
  return ids;
}
constexpr double scale = 0.125;

std::vector<double> softmax(const Buffer& scores, const Scores& s, std::vector<double>& stats) {
  std::vector<double> out(s.matrices * s.queries * s.keys);
  for (std::int64_t row = 0; row < s.matrices * s.queries; ++row) {
    const std::int64_t begin = s.first_seen(row), end = s.behind_seen(row);
    double high = -INFINITY, sum = 0;
    for (std::int64_t k = begin; k < end; ++k) high = std::max(high, scale * scores[row * s.keys + k]);
    for (std::int64_t k = begin; k < end; ++k) sum += std::exp(scale * scores[row * s.keys + k] - high);
    stats.push_back(high + std::log(sum));
    for (std::int64_t k = begin; k < end; ++k) {
      out[row * s.keys + k] = std::exp(scale * scores[row * s.keys + k] - stats.back());
    }
  }
  return out;
}

TEST_P(AttentionParts, SoftmaxAndProbabilities) {
  for (const Scores& s : score_shapes) {
    const std::int64_t rows = s.matrices * s.queries;
    // What a row does not see must not matter, whatever it is.
    Buffer scores = random(type(), rows * s.keys, 1, 20);
    for (std::int64_t i = 0; i < rows * s.keys; ++i) {
      if (!s.sees(i / s.keys, i % s.keys)) scores.set(i, NAN);
    }
    const Buffer ids = position_ids_of(s);
    const backend::Tensor position_ids = s.document > 0 ? backend::Tensor(ids) : backend::Tensor{};
    Buffer again = scores, stats(program::DType::f32, rows);
    std::vector<double> wanted_stats;
    const std::vector<double> wanted = softmax(scores, s, wanted_stats);
    cuda::attention_softmax(nullptr, scores, stats, position_ids, shape_of(s), scale);
    EXPECT_TRUE(close(scores, wanted.data(), limit())) << s.queries << " x " << s.keys;
    EXPECT_TRUE(close(stats, wanted_stats.data(), 1e-5)) << s.queries << " x " << s.keys;
    cuda::attention_probabilities(nullptr, again, stats, position_ids, shape_of(s), scale);
    EXPECT_TRUE(close(again, wanted.data(), limit())) << s.queries << " x " << s.keys;
    for (std::int64_t i = 0; i < rows * s.keys; ++i) {
      if (s.sees(i / s.keys, i % s.keys)) continue;
      ASSERT_EQ(scores[i], 0);
      ASSERT_EQ(again[i], 0);
    }
  }
}

TEST_P(AttentionParts, SoftmaxBackward) {
  for (const Scores& s : score_shapes) {
    const std::int64_t rows = s.matrices * s.queries, n = rows * s.keys;
    const Buffer p = random(type(), n, 1), delta = random(program::DType::f32, rows, 3);
    Buffer d = random(type(), n, 2);
    std::vector<double> wanted(n);
    for (std::int64_t i = 0; i < n; ++i) wanted[i] = scale * p[i] * (d[i] - delta[i / s.keys]);
    cuda::attention_softmax_backward(nullptr, p, d, delta, s.matrices, s.queries, s.keys, scale);
    EXPECT_TRUE(close(d, wanted.data(), limit())) << s.queries << " x " << s.keys;
  }
}

}  // namespace
}  // namespace harness::test
