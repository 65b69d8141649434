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
  std::int64_t document = 0;  // the length of each document but the last of a sequence; 0: one document

  std::int64_t first_seen(std::int64_t row) const { return document > 0 ? row % queries / document * document : 0; }
  std::int64_t behind_seen(std::int64_t row) const { return causal ? std::min(keys, row % queries + 1) : keys; }
  bool sees(std::int64_t row, std::int64_t key) const { return key >= first_seen(row) && key < behind_seen(row); }
};
// Square; more and fewer keys than queries; sizes not for vectors; more keys than one pass of a block; documents.
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
    // Masked scores must not matter, whatever they are: set them to NaN.
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
    EXPECT_TRUE(close(scores, wanted.data(), tolerance(type()))) << s.queries << " x " << s.keys;
    EXPECT_TRUE(close(stats, wanted_stats.data(), 1e-5)) << s.queries << " x " << s.keys;
    cuda::attention_probabilities(nullptr, again, stats, position_ids, shape_of(s), scale);
    EXPECT_TRUE(close(again, wanted.data(), tolerance(type()))) << s.queries << " x " << s.keys;
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
    EXPECT_TRUE(close(d, wanted.data(), tolerance(type()))) << s.queries << " x " << s.keys;
  }
}

// Checks the offsets of one kind: each document's beginning times the stride.
void expect_offsets(const Buffer& table, std::int64_t first, const std::vector<std::int64_t>& begins,
                    std::int64_t stride) {
  const auto* entry = static_cast<const std::int64_t*>(table.tensor().data) + first;
  for (std::size_t i = 0; i < begins.size(); ++i) ASSERT_EQ(entry[i], begins[i] * stride) << i;
}

TEST(Documents, AreFoundWhereTheirFirstPositionIs) {
  struct Case {
    std::int64_t batch, length, most, mean;
  };
  // Fewer and more positions than threads; a table too small for some sequences; documents of one position.
  for (const Case& c : {Case{3, 17, 17, 4}, Case{2, 1000, 40, 50}, Case{4, 300, 3, 60}, Case{1, 513, 513, 1}}) {
    program::AttentionShape s = shape_of(c.batch, 6, 8, c.length);
    s.query_stride = 80;
    s.key_stride = 70;
    Buffer ids(program::DType::i32, c.batch * c.length);
    std::vector<std::int64_t> begins, lengths;
    std::uint64_t drawn = 0;
    for (std::int64_t b = 0; b < c.batch; ++b) {
      const std::size_t first_entry = begins.size();
      std::int64_t number = b == 1 ? 5 : 0;  // the second sequence begins inside a document
      for (std::int64_t i = 0; i < c.length; ++i) {
        if (i > 0 && philox(7, ++drawn, 0)[0] % static_cast<std::uint64_t>(c.mean) == 0) number = 0;
        ids.set(b * c.length + i, static_cast<double>(number));
        const bool room = begins.size() - first_entry < static_cast<std::size_t>(c.most);
        if ((i == 0 || number == 0) && room) begins.push_back(b * c.length + i);
        ++number;
      }
      begins.resize(first_entry + static_cast<std::size_t>(c.most), (b + 1) * c.length);
    }
    begins.push_back(c.batch * c.length);
    for (std::size_t i = 0; i + 1 < begins.size(); ++i) lengths.push_back(begins[i + 1] - begins[i]);
    const auto entries = static_cast<std::int64_t>(begins.size());
    Buffer offsets(program::DType::i32, 2 * 4 * entries), found(program::DType::i32, entries - 1);
    auto* at = static_cast<std::int64_t*>(offsets.tensor().data);
    cuda::find_documents(nullptr, ids, s, c.most,
                         {at, at + entries, at + 2 * entries, at + 3 * entries, found.tensor().as<std::int32_t>()});
    const std::int64_t strides[] = {80, 70, 48, 6};
    for (std::int64_t k = 0; k < 4; ++k) expect_offsets(offsets, k * entries, begins, strides[k]);
    for (std::size_t i = 0; i < lengths.size(); ++i)
      ASSERT_EQ(found[static_cast<std::int64_t>(i)], static_cast<double>(lengths[i])) << i;
  }
}

TEST(Documents, ArraysOfOffsetsFollowEachOtherAtTheAlignmentOfCudnnsTensors) {
  constexpr std::int64_t tensor_alignment_bytes = 16;
  for (std::int64_t documents = 1; documents < 10; ++documents) {
    EXPECT_GT(cuda::document_entries(documents), documents);
    EXPECT_EQ(cuda::document_entries(documents) * std::int64_t{sizeof(std::int64_t)} % tensor_alignment_bytes, 0);
  }
}

TEST(Documents, StatsGoToTheOrderOfTokensAndBack) {
  for (const program::AttentionShape& s : head_shapes) {
    const std::int64_t n = s.batch * s.heads * s.query_length;
    const Buffer by_head = random(program::DType::f32, n, 4);
    Buffer by_token(program::DType::f32, n), again(program::DType::f32, n);
    cuda::stats_by_token(nullptr, by_head, by_token, s);
    cuda::stats_by_head(nullptr, by_token, again, s);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t position = i % s.query_length, head = i / s.query_length % s.heads,
                         sequence = i / s.query_length / s.heads;
      ASSERT_EQ(by_head[i], by_token[(sequence * s.query_length + position) * s.heads + head]);
      ASSERT_EQ(by_head[i], again[i]);
    }
  }
}

}  // namespace
}  // namespace harness::test
