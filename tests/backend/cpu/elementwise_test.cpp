#include "base/random.h"
#include "rig.h"

namespace harness::test {
namespace {

class Elementwise : public PerType {};
INSTANTIATE_TEST_SUITE_P(Types, Elementwise, all_types(), type_name);

double gelu_slope(double x) {
  const double c = std::sqrt(2 / M_PI), t = std::tanh(c * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x);
}

TEST_P(Elementwise, FillWritesEveryElement) {
  Rig rig(GetParam());
  const program::View out = rig.output(40001);
  rig.run(program::Fill{out, 0.75});
  EXPECT_EQ(rig.get(out), std::vector<double>(40001, 0.75));
}

TEST_P(Elementwise, ConvertGoesBothWays) {
  for (const bool widen : {false, true}) {
    Rig rig(GetParam());
    auto values = random_values(37003, 3);
    for (std::size_t i = 0; i < values.size(); ++i) {  // from less than f16 has to more
      values[i] = std::ldexp(values[i], static_cast<int>(i % 45) - 28);
    }
    const program::View in = widen ? rig.tensor(values) : rig.f32(values);
    const program::View out = widen ? rig.output_f32(37003) : rig.output(37003);
    rig.run(program::Convert{in, out});
    auto want = rig.rounded(in);
    for (double& x : want) x = Rig::round(GetParam(), x);
    EXPECT_EQ(rig.get(out), want);
  }
}

TEST(LossScaling, OneElementThatIsNotFiniteIsFound) {
  constexpr std::int64_t n = 40001;
  const auto found = [](const std::vector<double>& values) {
    Rig rig;
    const program::View in = rig.f32(values), found_inf = rig.f32({0});
    rig.run(program::CheckFinite{in, found_inf});
    return rig.get(found_inf)[0];
  };
  const auto values = random_values(n, 3, 1e37);
  EXPECT_EQ(found(values), 0);
  for (const std::int64_t at : {std::int64_t{0}, n / 2, n - 1}) {
    for (const double planted : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
      auto wrong = values;
      wrong[at] = planted;
      EXPECT_EQ(found(wrong), 1) << planted << " at " << at;
    }
  }
}

TEST_P(Elementwise, GeluAndItsSlope) {
  auto values = random_values(5003, 5, 3);
  values[0] = -90;
  values[1] = 90;
  values[2] = 0;
  values[3] = -12;
  values[4] = -1e4;
  values[5] = 1e4;
  {
    Rig rig(GetParam());
    const program::View in = rig.tensor(values), out = rig.output(5003);
    rig.run(program::Gelu{in, out});
    auto got = rig.get(out);
    const auto x = rig.rounded(in);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double want = gelu_of(x[i]);
      EXPECT_NEAR(got[i], want, rig.tolerance() * (std::abs(want) + 0.1)) << "x = " << x[i];
    }
  }
  Rig rig(GetParam());
  const program::View in = rig.tensor(values), data = rig.tensor(random_values(5003, 6));
  rig.run(program::GeluBackward{in, data});
  const auto got = rig.get(data), x = rig.rounded(in), dy = rig.rounded(data);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double want = dy[i] * gelu_slope(x[i]);
    EXPECT_NEAR(got[i], want, rig.tolerance() * (std::abs(want) + 0.5)) << "x = " << x[i];
  }
}

double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

TEST_P(Elementwise, SwiGluAndItsSlope) {
  for (const auto& [rows, width] : {std::pair<std::int64_t, std::int64_t>{1, 8}, {67, 83}, {130, 64}}) {
    const std::int64_t n = rows * width;
    auto values = random_values(2 * n, 5, 3);
    values[0] = -90;
    values[1] = 90;
    values[2] = 0;
    {
      Rig rig(GetParam());
      const program::View in = rig.tensor(values), out = rig.output(n);
      rig.run(program::SwiGlu{in, out, rows, width});
      const auto got = rig.get(out), x = rig.rounded(in);
      for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t at = i / width * 2 * width + i % width;
        const double want = x[at] * logistic(x[at]) * x[at + width];
        EXPECT_NEAR(got[i], want, rig.tolerance() * (std::abs(want) + 0.1)) << "element " << i;
      }
    }
    Rig rig(GetParam());
    const program::View in = rig.tensor(values), dout = rig.tensor(random_values(n, 6)), din = rig.output(2 * n);
    rig.run(program::SwiGluBackward{in, dout, din, rows, width});
    const auto got = rig.get(din), x = rig.rounded(in), dy = rig.rounded(dout);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t at = i / width * 2 * width + i % width;
      const double g = x[at], s = logistic(g);
      const double dgate = dy[i] * x[at + width] * (s + g * s * (1 - s)), dup = dy[i] * g * s;
      EXPECT_NEAR(got[at], dgate, rig.tolerance() * (std::abs(dgate) + 0.5)) << "gate " << i;
      EXPECT_NEAR(got[at + width], dup, rig.tolerance() * (std::abs(dup) + 0.5)) << "up " << i;
    }
  }
}

// Of three sequences whose rows have something behind the heads that turn.
TEST_P(Elementwise, RopeTurnsPairsOfEveryHead) {
  constexpr std::int64_t sequence = 21, rows = 3 * sequence, heads = 3, stride = 70;
  for (const std::int64_t d : {2, 8, 22}) {
    for (const bool backward : {false, true}) {
      Rig rig(GetParam());
      const std::int64_t n = (rows - 1) * stride + heads * d;
      const program::View data = rig.tensor(random_values(n, 3));
      rig.run(program::Rope{data, rows, stride, heads, d, sequence, 500, backward});
      auto want = rig.rounded(data);
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t h = 0; h < heads; ++h) {
          for (std::int64_t i = 0; i < d / 2; ++i) {
            const double angle = static_cast<double>(r % sequence) *
                                 std::pow(500, -2 * static_cast<double>(i) / static_cast<double>(d)) *
                                 (backward ? -1 : 1);
            double& x = want[r * stride + h * d + i];
            double& y = want[r * stride + h * d + i + d / 2];
            const double turned = x * std::cos(angle) - y * std::sin(angle);
            y = y * std::cos(angle) + x * std::sin(angle);
            x = turned;
          }
        }
      }
      const auto got = rig.get(data);
      EXPECT_LT(error(got, want), rig.tolerance()) << d;
      for (std::int64_t r = 0; r + 1 < rows; ++r) {
        for (std::int64_t c = heads * d; c < stride; ++c) ASSERT_EQ(got[r * stride + c], want[r * stride + c]);
      }
    }
  }
}

TEST_P(Elementwise, ResidualAndBias) {
  constexpr std::int64_t rows = 67, width = 53;
  Rig rig(GetParam());
  const program::View in = rig.tensor(random_values(rows * width, 1)), bias = rig.tensor(random_values(width, 2)),
                      residual = rig.tensor(random_values(rows * width, 3)), out = rig.output(rows * width);
  rig.run(program::ResidualAdd{in, bias, residual, out, rows, width});
  auto want = rig.rounded(in);
  const auto b = rig.rounded(bias), r = rig.rounded(residual);
  for (std::size_t i = 0; i < want.size(); ++i) want[i] += b[i % width] + r[i];
  EXPECT_LT(error(rig.get(out), want), rig.tolerance());

  Rig second(GetParam());
  const program::View data = second.tensor(random_values(rows * width, 1)),
                      bias2 = second.tensor(random_values(width, 2));
  second.run(program::BiasAdd{bias2, data, rows, width});
  auto want2 = second.rounded(data);
  for (std::size_t i = 0; i < want2.size(); ++i) want2[i] += b[i % width];
  EXPECT_LT(error(second.get(data), want2), second.tolerance());
}

TEST_P(Elementwise, ColumnSum) {
  for (const bool accumulate : {false, true}) {
    for (const auto& [rows, width] : {std::pair<std::int64_t, std::int64_t>{1000, 147}, {3, 64}, {129, 1}}) {
      Rig rig(GetParam());
      const program::View in = rig.tensor(random_values(rows * width, 1));
      const program::View out = accumulate ? rig.f32(random_values(width, 2)) : rig.output_f32(width);
      rig.run(program::ColumnSum{in, out, rows, width, accumulate});
      std::vector<double> want = accumulate ? rig.rounded(out) : std::vector<double>(width);
      const auto x = rig.rounded(in);
      for (std::size_t i = 0; i < x.size(); ++i) want[i % width] += x[i];
      EXPECT_LT(error(rig.get(out), want), 2e-6);
    }
  }
}

TEST(Initialize, DrawsTheNumbersOfItsSliceOfTheGlobalTensor) {
  // Global tensor [2, 6, 5], this rank the third of three slices along the middle.
  program::Layout layout;
  layout[program::Axis::tensor] = 3;
  Rig rig;
  const program::View out = rig.output(2 * 2 * 5);
  rig.run(program::Initialize{out, 1000, program::Axis::tensor, 2, 6, 2, 5, 0.5, 0.02}, layout, 2, 42);
  std::vector<double> want;
  for (int i = 0; i < 2; ++i) {
    for (int j = 4; j < 6; ++j) {
      for (int k = 0; k < 5; ++k) {
        want.push_back(0.5 + 0.02 * philox_normal(42, static_cast<std::uint64_t>(1000 + (i * 6 + j) * 5 + k)));
      }
    }
  }
  EXPECT_LT(error(rig.get(out), want), 1e-6);
}

TEST(Initialize, ManyNumbersAreThoseOfTheGenerator) {
  constexpr std::int64_t n = 300007;
  Rig rig;
  const program::View out = rig.output(n);
  rig.run(program::Initialize{out, (std::int64_t{1} << 33) + 5, program::Axis::tensor, 1, n, n, 1, 0, 1}, {}, 0,
          0x123456789abcdefull);
  const auto got = rig.get(out);
  for (std::int64_t i = 0; i < n; ++i) {
    const double want =
        philox_normal(0x123456789abcdefull, (std::uint64_t{1} << 33) + 5 + static_cast<std::uint64_t>(i));
    ASSERT_NEAR(got[i], want, 1e-7 * std::max(1.0, std::abs(want))) << i;
  }
}

TEST(Initialize, WithoutDeviationIsAFill) {
  Rig rig;
  const program::View out = rig.output(33);
  rig.run(program::Initialize{out, 0, program::Axis::tensor, 1, 33, 33, 1, 1.0, 0});
  EXPECT_EQ(rig.get(out), std::vector<double>(33, 1.0));
}

TEST(Record, WritesTheRingAndCounts) {
  Rig rig;
  const program::View value = rig.f32({2.5}), ring = rig.f32({1, 2, 3, 4}), counter = rig.i32({6});
  rig.run(program::Record{value, ring, counter});
  EXPECT_EQ(rig.get(ring), (std::vector<double>{1, 2, 2.5, 4}));
  EXPECT_EQ(rig.get(counter), (std::vector<double>{7}));
}

}  // namespace
}  // namespace harness::test
