#include <array>

#include "rig.h"

namespace harness::test {
namespace {

class Attentions : public PerType {};
INSTANTIATE_TEST_SUITE_P(Types, Attentions, all_types(), type_name);

// Packed q, k, v of one buffer [rows, heads + 2 kv_heads, head_dim]; the oracle works on single heads.
struct Oracle {
  program::AttentionShape s;
  std::vector<double> q, k, v, dout;  // buffers with their strides
  std::vector<double> out, stats, dq, dk, dv;
  std::vector<double> ids = {};  // by sequence and position, the position within its document; none: one document

  static double& in(std::vector<double>& t, std::int64_t at) { return t[at]; }
  std::int64_t query(std::int64_t b, std::int64_t i, std::int64_t h) const {
    return (b * s.query_length + i) * s.query_stride + h * s.head_dim;
  }
  std::int64_t key(std::int64_t b, std::int64_t j, std::int64_t h) const {
    return (b * s.key_length + j) * s.key_stride + h / s.group * s.head_dim;
  }
  std::int64_t result(std::int64_t b, std::int64_t i, std::int64_t h) const {
    return ((b * s.query_length + i) * s.heads + h) * s.head_dim;
  }

  void run() {
    const double scale = 1 / std::sqrt(static_cast<double>(s.head_dim));
    out.assign(s.batch * s.query_length * s.heads * s.head_dim, 0);
    stats.assign(s.batch * s.query_length * s.heads, 0);
    dq.assign(q.size(), 0);
    dk.assign(k.size(), 0);
    dv.assign(v.size(), 0);
    for (std::int64_t b = 0; b < s.batch; ++b) {
      for (std::int64_t h = 0; h < s.heads; ++h) {
        for (std::int64_t i = 0; i < s.query_length; ++i) row(b, h, i, scale);
      }
    }
  }

  void row(std::int64_t b, std::int64_t h, std::int64_t i, double scale) {
    const std::int64_t seen = s.causal ? std::min(s.key_length, i + 1) : s.key_length;
    const std::int64_t first = ids.empty() ? 0 : i - static_cast<std::int64_t>(in(ids, b * s.query_length + i));
    std::vector<double> p(seen), dp(p.size());
    double sum = 0, delta = 0;
    for (std::int64_t j = first; j < seen; ++j) {
      double dot = 0;
      for (std::int64_t d = 0; d < s.head_dim; ++d) dot += in(q, query(b, i, h) + d) * in(k, key(b, j, h) + d);
      in(p, j) = std::exp(dot * scale);
      sum += in(p, j);
    }
    in(stats, (b * s.heads + h) * s.query_length + i) = std::log(sum);
    for (std::int64_t j = first; j < seen; ++j) {
      in(p, j) /= sum;
      for (std::int64_t d = 0; d < s.head_dim; ++d) {
        in(out, result(b, i, h) + d) += in(p, j) * in(v, key(b, j, h) + d);
        in(dp, j) += in(dout, result(b, i, h) + d) * in(v, key(b, j, h) + d);
      }
      delta += in(p, j) * in(dp, j);
    }
    for (std::int64_t j = first; j < seen; ++j) {
      const double ds = scale * in(p, j) * (in(dp, j) - delta);
      for (std::int64_t d = 0; d < s.head_dim; ++d) {
        in(dq, query(b, i, h) + d) += ds * in(k, key(b, j, h) + d);
        in(dk, key(b, j, h) + d) += ds * in(q, query(b, i, h) + d);
        in(dv, key(b, j, h) + d) += in(p, j) * in(dout, result(b, i, h) + d);
      }
    }
  }
};

program::AttentionShape packed(std::int64_t batch, std::int64_t heads, std::int64_t head_dim, std::int64_t length,
                               bool causal, std::int64_t group = 1) {
  const std::int64_t stride = (heads + 2 * heads / group) * head_dim;
  return {batch, heads, head_dim, length, length, stride, stride, causal, group};
}

// Each row of the probabilities: those of the keys it sees are summed up to 1, and the others are 0.
void expect_rows_of_a_softmax(const std::vector<double>& p, const program::AttentionShape& s, double tolerance) {
  for (std::int64_t row = 0; row < s.batch * s.heads * s.query_length; ++row) {
    const std::int64_t seen = s.causal ? std::min(s.key_length, row % s.query_length + 1) : s.key_length;
    double sum = 0;
    for (std::int64_t j = 0; j < s.key_length; ++j) {
      sum += p[row * s.key_length + j];
      if (j < seen) continue;
      ASSERT_EQ(p[row * s.key_length + j], 0) << "row " << row << ", key " << j;
    }
    ASSERT_NEAR(sum, 1, tolerance) << "row " << row;
  }
}

void check(program::DType type, const program::AttentionShape& s, bool accumulate, int threads, bool unfused = false,
           const std::vector<double>& ids = {}) {
  const std::int64_t width = s.heads * s.head_dim, rows = s.batch * s.query_length;
  const std::int64_t stride = s.query_stride, of_keys = s.kv_heads() * s.head_dim;
  const std::array first{std::int64_t{0}, width, width + of_keys}, wide{width, of_keys, of_keys};
  const auto span = [&](std::int64_t i) { return (rows - 1) * stride + wide.at(i); };
  const auto part = [&](const program::View& v, std::int64_t i) { return v.part(first.at(i), span(i)); };
  const auto cut = [&](const std::vector<double>& v, std::int64_t i) {
    return std::vector<double>(v.begin() + first.at(i), v.begin() + first.at(i) + span(i));
  };
  Oracle oracle{s, {}, {}, {}, {}, {}, {}, {}, {}, {}, ids};
  const auto ids_in = [&](Rig& rig) { return ids.empty() ? program::View{} : rig.i32(ids); };
  program::View out, stats;
  std::vector<double> qkv_values, kept;
  const std::int64_t scores = unfused ? s.batch * s.heads * s.query_length * s.key_length : 0;
  {
    Rig rig(type, threads);
    const program::View qkv = rig.tensor(random_values(rows * stride, 7));
    out = rig.output(rows * width);
    stats = rig.output_f32(s.batch * s.heads * s.query_length);
    const program::View p = unfused ? rig.output(scores) : program::View{};
    rig.run(program::Attention{part(qkv, 0), part(qkv, 1), part(qkv, 2), out, stats, s, p, ids_in(rig)});
    if (unfused) {
      kept = rig.get(p);
      expect_rows_of_a_softmax(kept, s, type == program::DType::f32 ? 1e-5 : 1e-2);
    }
    qkv_values = rig.rounded(qkv);
    oracle.q = cut(qkv_values, 0);
    oracle.k = cut(qkv_values, 1);
    oracle.v = cut(qkv_values, 2);
    oracle.dout = random_values(rows * width, 8);
    oracle.run();
    EXPECT_LT(error(rig.get(out), oracle.out), rig.tolerance());
    EXPECT_LT(error(rig.get(stats), oracle.stats), 2e-6);
  }
  Rig rig(type, threads);
  const program::View qkv = rig.tensor(qkv_values), dout = rig.tensor(oracle.dout), o = rig.tensor(oracle.out),
                      st = rig.f32(oracle.stats);
  const program::View dqkv = accumulate ? rig.tensor(random_values(rows * stride, 9)) : rig.output(rows * stride);
  const program::View p = unfused ? rig.tensor(kept) : program::View{};
  rig.run(program::AttentionBackward{part(qkv, 0), part(qkv, 1), part(qkv, 2), o, st, dout, part(dqkv, 0),
                                     part(dqkv, 1), part(dqkv, 2), s, accumulate, p, ids_in(rig)});
  oracle.dout = rig.rounded(dout);
  oracle.run();
  const auto got = rig.get(dqkv);
  const auto before = rig.rounded(dqkv);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t i = 0; i < 3; ++i) {
      const auto& want = *std::array{&oracle.dq, &oracle.dk, &oracle.dv}[i];
      for (std::int64_t c = 0; c < wide.at(i); ++c) {
        const std::size_t at = r * stride + first.at(i) + c;
        const double base = accumulate ? before[at] : 0;
        const double exact = want[r * stride + c] + base;
        // Of keys and values, sums over a group.
        const double terms = i == 0 ? 1 : static_cast<double>(s.group);
        ASSERT_NEAR(got[at], exact, rig.tolerance() * terms * (type == program::DType::f32 ? 4 : 6))
            << "row " << r << " part " << i;
      }
    }
  }
}

TEST_P(Attentions, CausalPackedOverSeveralBlocks) {
  check(GetParam(), packed(2, 4, 16, 150, true), false, 2);
  check(GetParam(), packed(1, 2, 64, 128, true), false, 1);
}

TEST_P(Attentions, OddSizesAndMoreThreadsThanHeads) {
  check(GetParam(), packed(1, 3, 20, 67, true), false, 5);
  check(GetParam(), packed(3, 1, 8, 1, true), false, 2);
}

TEST_P(Attentions, FullAndAccumulated) {
  check(GetParam(), packed(2, 2, 16, 70, false), true, 2);
}

TEST_P(Attentions, UnfusedKeepsItsProbabilitiesAndReadsThem) {
  check(GetParam(), packed(2, 4, 16, 150, true), false, 2, true);
  check(GetParam(), packed(1, 3, 20, 67, true), true, 5, true);
  check(GetParam(), packed(2, 2, 16, 70, false), true, 2, true);
}

TEST_P(Attentions, GroupsOfQueriesShareKeysAndValues) {
  check(GetParam(), packed(2, 4, 16, 150, true, 2), false, 2);
  check(GetParam(), packed(1, 6, 20, 67, true, 3), true, 5);
  check(GetParam(), packed(2, 4, 16, 70, false, 4), true, 2);
  check(GetParam(), packed(2, 4, 16, 150, true, 2), true, 2, true);
}

// Positions within documents of these lengths, which lie one behind the other.
std::vector<double> positions_of(const std::vector<int>& lengths) {
  std::vector<double> ids;
  for (const int length : lengths) {
    for (int i = 0; i < length; ++i) ids.push_back(i);
  }
  return ids;
}

TEST_P(Attentions, DocumentsInASequenceSeeThemselvesAlone) {
  // Sequences of 200 positions, in blocks of 64 rows; the documents end within a block, at its end and past the next.
  const std::vector<double> ids = positions_of({30, 34, 100, 1, 1, 34, 64, 136});
  check(GetParam(), packed(2, 4, 16, 200, true), false, 2, false, ids);
  check(GetParam(), packed(2, 4, 16, 200, true, 2), true, 3, false, ids);
  check(GetParam(), packed(2, 2, 16, 200, true), false, 2, true, ids);
}

TEST_P(Attentions, NoGradientCrossesTheBorderOfADocument) {
  constexpr std::int64_t length = 150, border = 70, width = 32;
  const program::AttentionShape s{1, 2, 16, length, length, width, width, true};
  Rig rig(GetParam());
  const auto normal = [&](std::uint64_t seed) { return rig.tensor(random_values(length * width, seed)); };
  const program::View q = normal(1), k = normal(2), v = normal(3), out = normal(4);
  std::vector<double> of_second = random_values(length * width, 5);
  std::fill_n(of_second.begin(), border * width, 0.0);
  const program::View dout = rig.tensor(of_second), stats = rig.f32(random_values(2 * length, 6));
  const program::View dq = rig.output(length * width), dk = rig.output(length * width), dv = rig.output(length * width);
  const program::View ids = rig.i32(positions_of({border, length - border}));
  rig.run(program::AttentionBackward{q, k, v, out, stats, dout, dq, dk, dv, s, false, {}, ids});
  for (const program::View& gradient : {dq, dk, dv}) {
    const std::vector<double> values = rig.get(gradient);
    EXPECT_EQ(std::vector<double>(values.begin(), values.begin() + border * width),
              std::vector<double>(border * width));
    EXPECT_NE(values.back(), 0);
  }
}

// Gradients that follow from nothing else are 0 where all probabilities are.
TEST_P(Attentions, BackwardTakesTheProbabilitiesThatItIsGiven) {
  const program::AttentionShape s{1, 2, 16, 40, 40, 32, 32, true};
  Rig rig(GetParam());
  const auto normal = [&](std::uint64_t seed) { return rig.tensor(random_values(40 * 32, seed)); };
  const program::View q = normal(1), k = normal(2), v = normal(3), out = normal(4), dout = normal(5);
  const program::View stats = rig.f32(random_values(80, 6)), p = rig.tensor(std::vector<double>(2 * 40 * 40));
  const program::View dq = rig.output(40 * 32), dk = rig.output(40 * 32), dv = rig.output(40 * 32);
  rig.run(program::AttentionBackward{q, k, v, out, stats, dout, dq, dk, dv, s, false, p});
  for (const program::View& gradient : {dq, dk, dv}) {
    EXPECT_EQ(rig.get(gradient), std::vector<double>(40 * 32));
  }
}

// Keys split in two: the attention over each half, merged, is the whole.
TEST_P(Attentions, MergeJoinsDisjointKeys) {
  const program::AttentionShape whole{1, 2, 16, 40, 60, 32, 32, false};
  const auto q = random_values(40 * 32, 1), k = random_values(60 * 32, 2), v = random_values(60 * 32, 3);
  program::AttentionShape half = whole;
  half.key_length = 30;
  std::vector<double> outs[2], stats[2];
  Oracle oracle{whole, {}, {}, {}, std::vector<double>(q.size()), {}, {}, {}, {}, {}};
  for (const std::int64_t i : {0, 1}) {
    Rig rig(GetParam());
    const program::View qv = rig.tensor(q), kv = rig.tensor(k), vv = rig.tensor(v), out = rig.output(40 * 32),
                        st = rig.output_f32(80);
    rig.run(program::Attention{qv, kv.part(i * 30 * 32, 30 * 32), vv.part(i * 30 * 32, 30 * 32), out, st, half});
    outs[i] = rig.get(out);
    stats[i] = rig.get(st);
    oracle.q = rig.rounded(qv);
    oracle.k = rig.rounded(kv);
    oracle.v = rig.rounded(vv);
  }
  Rig rig(GetParam());
  const program::View a = rig.tensor(outs[0]), sa = rig.f32(stats[0]), b = rig.tensor(outs[1]), sb = rig.f32(stats[1]);
  rig.run(program::AttentionMerge{a, sa, b, sb, whole});
  oracle.run();
  EXPECT_LT(error(rig.get(b), oracle.out), rig.tolerance() * 2);
  EXPECT_LT(error(rig.get(sb), oracle.stats), 2e-6);
}

}  // namespace
}  // namespace harness::test
