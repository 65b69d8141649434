#include "rig.h"

namespace harness::test {
namespace {

class Embeddings : public PerType {};
INSTANTIATE_TEST_SUITE_P(Types, Embeddings, all_types(), type_name);

constexpr std::int64_t rows = 24, sequence = 8, width = 37, vocab = 20, shards = 2, local = vocab / shards;

std::vector<double> tokens() {
  std::vector<double> t;
  for (std::int64_t i = 0; i < rows; ++i) t.push_back(static_cast<double>(i * 7 % vocab));
  return t;
}

std::size_t at(std::int64_t r, std::int64_t c) {
  return r * width + c;
}

TEST_P(Embeddings, ShardsAddUpToTheEmbedding) {
  program::Layout layout;
  layout[program::Axis::tensor] = shards;
  const auto token = tokens();
  for (int s = 0; s < shards; ++s) {
    Rig rig(GetParam());
    const program::View t = rig.i32(token), words = rig.tensor(random_values(local * width, 1)),
                        positions = rig.tensor(random_values(sequence * width, 2)), out = rig.output(rows * width);
    rig.run(program::Embedding{t, words, positions, out, rows, width, sequence, {program::Axis::tensor, local}}, layout,
            s);
    std::vector<double> want(rows * width);
    const auto w = rig.rounded(words), p = rig.rounded(positions);
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t row = static_cast<std::int64_t>(token[r]) - s * local;
      for (std::int64_t c = 0; c < width; ++c) {
        if (row >= 0 && row < local) want[at(r, c)] += w[at(row, c)];
        if (s == 0) want[at(r, c)] += p[at(r % sequence, c)];
      }
    }
    EXPECT_LT(error(rig.get(out), want), rig.tolerance());
  }
}

TEST_P(Embeddings, WithoutPositionsThereAreTheWordsAlone) {
  const auto token = tokens();
  Rig rig(GetParam());
  const program::View t = rig.i32(token), words = rig.tensor(random_values(vocab * width, 1)),
                      out = rig.output(rows * width);
  rig.run(program::Embedding{t, words, {}, out, rows, width, sequence, {program::Axis::tensor, vocab}});
  const auto w = rig.rounded(words), got = rig.get(out);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < width; ++c)
      EXPECT_EQ(got[at(r, c)], w[at(static_cast<std::int64_t>(token[r]), c)]) << r;
  }
  Rig back(GetParam());
  const program::View tb = back.i32(token), dout = back.tensor(random_values(rows * width, 2)),
                      dwords = back.f32(std::vector<double>(vocab * width));
  back.run(program::EmbeddingBackward{tb, dout, dwords, {}, rows, width, sequence, {program::Axis::tensor, vocab}});
  std::vector<double> want(vocab * width);
  const auto dy = back.rounded(dout);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < width; ++c) want[at(static_cast<std::int64_t>(token[r]), c)] += dy[at(r, c)];
  }
  EXPECT_LT(error(back.get(dwords), want), 2e-6);
}

TEST_P(Embeddings, BackwardAddsRowsOfEqualTokens) {
  program::Layout layout;
  layout[program::Axis::tensor] = shards;
  const auto token = tokens();
  for (const bool accumulate : {false, true}) {
    for (int s = 0; s < shards; ++s) {
      Rig rig(GetParam());
      const program::View t = rig.i32(token), dout = rig.tensor(random_values(rows * width, 1)),
                          dwords = rig.f32(random_values(local * width, 2)),
                          dpositions = accumulate ? rig.f32(random_values(sequence * width, 3))
                                                  : rig.output_f32(sequence * width);
      rig.run(
          program::EmbeddingBackward{
              t, dout, dwords, dpositions, rows, width, sequence, {program::Axis::tensor, local}, accumulate},
          layout, s);
      auto want_words = rig.rounded(dwords);
      auto want_positions = accumulate ? rig.rounded(dpositions) : std::vector<double>(sequence * width);
      const auto g = rig.rounded(dout);
      for (std::int64_t r = 0; r < rows; ++r) {
        const std::int64_t row = static_cast<std::int64_t>(token[r]) - s * local;
        for (std::int64_t c = 0; c < width; ++c) {
          if (row >= 0 && row < local) want_words[at(row, c)] += g[at(r, c)];
          want_positions[at(r % sequence, c)] += g[at(r, c)];
        }
      }
      EXPECT_LT(error(rig.get(dwords), want_words), 1e-6);
      EXPECT_LT(error(rig.get(dpositions), want_positions), 1e-6);
    }
  }
}

class Optimizer : public PerType {};
INSTANTIATE_TEST_SUITE_P(Types, Optimizer, all_types(), type_name);

TEST_P(Optimizer, AdamWAsInPyTorch) {
  constexpr std::int64_t n = 50021;
  for (const int step : {1, 7}) {
    Rig rig(GetParam());
    const program::View w = rig.f32(random_values(n, 1)), m = rig.f32(random_values(n, 2, 0.1)),
                        g = rig.f32(random_values(n, 4));
    auto squares = random_values(n, 3, 0.1);
    for (double& x : squares) x *= x;
    const program::View v = rig.f32(squares), counter = rig.i32({static_cast<double>(step - 1)}),
                        rate = rig.f32({0.003});
    const program::View weights = rig.output(n);
    rig.run(program::AdamW{w, m, v, g, weights, counter, rate, 0.9, 0.95, 1e-8, 0.1});
    auto ww = rig.rounded(w), mm = rig.rounded(m), vv = rig.rounded(v);
    const auto gg = rig.rounded(g);
    const double lr = rig.rounded(rate)[0];
    for (std::size_t i = 0; i < ww.size(); ++i) {
      ww[i] *= 1 - lr * 0.1;
      mm[i] = 0.9 * mm[i] + 0.1 * gg[i];
      vv[i] = 0.95 * vv[i] + 0.05 * gg[i] * gg[i];
      const double denominator = std::sqrt(vv[i]) / std::sqrt(1 - std::pow(0.95, step)) + 1e-8;
      ww[i] -= lr / (1 - std::pow(0.9, step)) * mm[i] / denominator;
    }
    EXPECT_LT(error(rig.get(w), ww), 1e-6);
    EXPECT_LT(error(rig.get(m), mm), 1e-6);
    EXPECT_LT(error(rig.get(v), vv), 1e-6);
    EXPECT_LT(error(rig.get(weights), ww), rig.tolerance());
    EXPECT_EQ(rig.get(counter)[0], step - 1);
  }
}

}  // namespace
}  // namespace harness::test
