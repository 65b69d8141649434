// The kernels against the reference in double precision (backend/reference.cpp).
#include "rig.h"
#include "support/soak.h"

namespace harness::test {
namespace {

using program::DType;

TEST(Operations, ComputeWhatTheirTableSays) {
  int number = 0;
  for (const selftest::OperationCase& c : selftest::operation_cases(false, true, true)) {
    // Larger cases are for the GPU kernels.
    if (std::ranges::any_of(c.program.buffers, [](const program::Buffer& b) { return b.count > 50'000; })) continue;
    // All cases run at -O2, a fourth of them with sanitizers.
    ++number;
    if (sanitized && number % 4 != 0) continue;
    selftest::CaseBytes before;
    for (std::size_t b = 0; b < c.buffers.size(); ++b) before.push_back(selftest::initial_bytes(c, b, 1));
    expect_reference(c, before, 1 + number % 3);
  }
}

class Operations : public PerType {};
INSTANTIATE_TEST_SUITE_P(Types, Operations, all_types(), type_name);

TEST_P(Operations, ConvertRoundsNumbersOfAllMagnitudes) {
  auto values = random_values(37003, 3);  // from below the range of f16 to above it
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::ldexp(values[i], static_cast<int>(i % 45) - 28);
  for (const bool widen : {false, true}) {
    Rig rig(GetParam());
    const program::View in = widen ? rig.tensor(values) : rig.f32(values);
    const program::View out = widen ? rig.output_f32(37003) : rig.output(37003);
    rig.run(program::Convert{in, out});
    auto want = values;
    std::vector<std::byte> stored(4);
    for (double& x : want) {
      const Numbers rounded({stored.data(), GetParam(), 1});
      rounded[0] = x;
      x = rounded[0];
    }
    EXPECT_EQ(rig.get(out), want);
  }
}

TEST_P(Operations, ActivationsFarFromZeroAreFinite) {
  const Values values{-90, 90, 0, -12, -1e4, 1e4, 30, -30};
  Rig gelu(GetParam());
  const program::View in = gelu.tensor(values), out = gelu.output(8);
  gelu.check(program::Gelu{in, out});
  Rig slope(GetParam());
  const program::View at = slope.tensor(values), data = slope.tensor(random_values(8, 6));
  slope.check(program::GeluBackward{at, data});
  Rig glu(GetParam());
  const Values gates_and_ups{-90, 90, 0, -1e4, 2, -3, 4, 5};
  const program::View both = glu.tensor(gates_and_ups), product = glu.output(4);
  glu.check(program::SwiGlu{both, product, 1, 4});
  Rig back(GetParam());
  const program::View halves = back.tensor(gates_and_ups), dout = back.tensor({1, 2, 3, 4}), din = back.output(8);
  back.check(program::SwiGluBackward{halves, dout, din, 1, 4});
}

TEST(Operations, InitializeDrawsTheNumbersOfTheGenerator) {
  constexpr std::int64_t n = 300007, first = (std::int64_t{1} << 33) + 5;
  Rig rig;
  const program::View out = rig.output(n);
  rig.check(program::Initialize{out, first, program::Axis::tensor, 1, n, n, 1, 0, 1});
  const Values got = rig.get(out);
  for (std::int64_t i = 0; i < n; ++i) {
    const double want = philox_normal(1, static_cast<std::uint64_t>(first + i));
    ASSERT_NEAR(got[i], want, 1e-7 * std::max(1.0, std::abs(want))) << i;
  }
}

TEST(Operations, OneElementThatIsNotFiniteIsFound) {
  constexpr std::int64_t n = 40001;
  for (const std::int64_t at : {std::int64_t{0}, n / 2, n - 1}) {
    for (const double planted : {1.0, HUGE_VAL, -HUGE_VAL, std::nan("")}) {
      auto values = random_values(n, 3, 1e37);
      values[at] = planted;
      Rig rig;
      const program::View in = rig.f32(values), found_inf = rig.f32({0});
      rig.run(program::CheckFinite{in, found_inf});
      EXPECT_EQ(rig.get(found_inf)[0], std::isfinite(planted) ? 0 : 1) << planted << " at " << at;
    }
  }
}

// ---- several documents in a sequence --------------------------------------------------------------------------------

// Position ids of consecutive documents of these lengths.
Values positions_of(const std::vector<int>& lengths) {
  Values ids;
  for (const int length : lengths) {
    for (int i = 0; i < length; ++i) ids.push_back(i);
  }
  return ids;
}

program::AttentionShape packed(std::int64_t batch, std::int64_t heads, std::int64_t head_dim, std::int64_t length,
                               bool causal, std::int64_t group = 1) {
  const std::int64_t stride = (heads + 2 * heads / group) * head_dim;
  return {batch, heads, head_dim, length, length, stride, stride, causal, group};
}

void check_attention(DType type, const program::AttentionShape& s, bool accumulate, int threads, bool unfused = false,
                     const Values& ids = {}) {
  const std::int64_t rows = s.batch * s.query_length, width = s.heads * s.head_dim, keys = s.kv_heads() * s.head_dim;
  const std::int64_t before = (rows - 1) * s.query_stride, scores = rows * s.heads * s.key_length;
  const auto forward = [&](Rig& rig) {
    const program::View qkv = rig.tensor(random_values(rows * s.query_stride, 7));
    program::Attention op{qkv.part(0, before + width),           qkv.part(width, before + keys),
                          qkv.part(width + keys, before + keys), rig.output(rows * width),
                          rig.output_f32(rows * s.heads),        s};
    if (unfused) op.probabilities = rig.output(scores);
    if (!ids.empty()) {
      op.position_ids = rig.i32(ids);
      op.documents = std::ranges::count(ids, 0);
    }
    return op;
  };
  Rig rig(type, threads);
  rig.check(forward(rig));
  Rig back(type, threads);
  const program::Attention f = forward(back);
  back.prepare(f);
  const program::View dout = back.tensor(random_values(rows * width, 8));
  const program::View d =
      accumulate ? back.tensor(random_values(rows * s.query_stride, 9)) : back.output(rows * s.query_stride);
  back.check(program::AttentionBackward{f.q, f.k, f.v, f.out, f.stats, dout, d.part(0, before + width),
                                        d.part(width, before + keys), d.part(width + keys, before + keys), s,
                                        accumulate, f.probabilities, f.position_ids, f.documents});
}

TEST_P(Operations, AttentionOverSeveralBlocksAndMoreThreadsThanHeads) {
  check_attention(GetParam(), packed(2, 4, 16, 150, true), false, 2);
  check_attention(GetParam(), packed(1, 3, 20, 67, true), true, 5);
  check_attention(GetParam(), packed(3, 1, 8, 1, true), false, 2);
  check_attention(GetParam(), packed(2, 2, 16, 70, false), true, 2, true);
  check_attention(GetParam(), packed(2, 4, 16, 150, true, 2), true, 2, true);
}

TEST_P(Operations, DocumentsInASequenceSeeThemselvesAlone) {
  // Sequences of 200 positions, in blocks of 64 rows; the documents end within a block, at its end and past the next.
  const Values ids = positions_of({30, 34, 100, 1, 1, 34, 64, 136});
  check_attention(GetParam(), packed(2, 4, 16, 200, true), false, 2, false, ids);
  check_attention(GetParam(), packed(2, 4, 16, 200, true, 2), true, 3, false, ids);
  check_attention(GetParam(), packed(2, 2, 16, 200, true), false, 2, true, ids);
}

// ---- cross-entropy --------------------------------------------------------------------------------------------------

TEST(Operations, ALabelThatIsNoTokenMakesTheLossNaN) {
  Rig rig;
  const program::View logits = rig.f32({1, 2, 3}), labels = rig.i32({3}), loss = rig.f32({0});
  rig.run(program::CrossEntropy{logits, labels, loss, 1, 3});
  EXPECT_TRUE(std::isnan(rig.get(loss)[0]));
}

// ---- gradient compression -------------------------------------------------------------------------------------------

struct Kept {
  Values values, indices, residual;
  bool operator==(const Kept&) const = default;
};

Kept top_k(const Values& gradient, const Values& residual, std::int64_t k, int threads = 2, bool check = true) {
  Rig rig(DType::f32, threads);
  const program::TopK op{rig.f32(gradient), rig.f32(residual), rig.output_f32(k), rig.output(k, DType::i32)};
  check ? rig.check(op) : rig.run(op);
  return {rig.get(op.values), rig.get(op.indices), rig.get(op.residual)};
}

TEST(Operations, TopKTakesTheLowerIndexOfEqualMagnitudes) {
  const Kept kept = top_k({1, -2, 2, 0, -2, 3}, Values(6, 0), 3);
  EXPECT_EQ(kept.values, (Values{-2, 2, 3}));
  EXPECT_EQ(kept.indices, (Values{1, 2, 5}));
  EXPECT_EQ(kept.residual, (Values{1, 0, 0, 0, -2, 0}));
  // Ties in the ranges of all threads: among all elements, and among every second one.
  const Values same(100003, 0.5), none(100003, 0);
  Values alternating = same;
  for (std::size_t i = 0; i < alternating.size(); i += 2) alternating[i] = -1;
  for (const std::int64_t k : {1, 40000, 60000, 100003}) {
    for (const Values& gradient : {same, alternating}) {
      const Kept alone = top_k(gradient, none, k, 1);
      for (const int threads : {2, 5})
        EXPECT_TRUE(top_k(gradient, none, k, threads, false) == alone) << k << ' ' << threads;
    }
  }
}

// Dropping a NaN gradient would hide a training that has failed.
TEST(Operations, TopKKeepsNaNFirst) {
  const Kept kept = top_k({1, 1e38, NAN, -INFINITY}, Values(4, 0), 2, 2, false);
  EXPECT_TRUE(std::isnan(kept.values[0]));
  EXPECT_EQ(kept.values[1], -INFINITY);
}

}  // namespace
}  // namespace harness::test
