#include "rig.h"

namespace harness::test {
namespace {

class LayerNorms : public PerType {};
INSTANTIATE_TEST_SUITE_P(Types, LayerNorms, all_types(), type_name);
class RmsNorms : public PerType {};
INSTANTIATE_TEST_SUITE_P(Types, RmsNorms, all_types(), type_name);

struct Shape {
  std::int64_t rows, width;
};
constexpr Shape shapes[] = {{1, 16}, {130, 64}, {67, 83}, {9, 1027}};

// Of both operations of a norm: LayerNorm takes a mean off, RmsNorm does not.
template <class Op>
constexpr bool centres = requires(Op op) {
  op.mean;
};

struct Normalised {
  std::vector<double> out, mean, rstd;
};

Normalised normalised(const std::vector<double>& x, Shape s, bool centred) {
  Normalised n{std::vector<double>(x.size()), {}, {}};
  for (std::int64_t r = 0; r < s.rows; ++r) {
    double m = 0, v = 0;
    for (std::int64_t i = 0; i < s.width && centred; ++i) m += x[r * s.width + i] / static_cast<double>(s.width);
    for (std::int64_t i = 0; i < s.width; ++i) v += std::pow(x[r * s.width + i] - m, 2);
    const double q = 1 / std::sqrt(v / static_cast<double>(s.width) + 1e-5);
    n.mean.push_back(m);
    n.rstd.push_back(q);
    for (std::int64_t i = 0; i < s.width; ++i) n.out[r * s.width + i] = (x[r * s.width + i] - m) * q;
  }
  return n;
}

template <class Norm>
void check_forward(program::DType type) {
  for (const Shape s : shapes) {
    for (int parts = 0; parts < 4; ++parts) {
      Rig rig(type);
      const std::int64_t n = s.rows * s.width;
      std::vector<double> off_centre = random_values(n, 1);
      for (double& x : off_centre) x += 0.5;
      Norm op;
      op.rows = s.rows;
      op.width = s.width;
      op.in = rig.tensor(off_centre);
      op.gamma = rig.tensor(random_values(s.width, 2));
      if (parts & 1) op.bias = rig.tensor(random_values(s.width, 4));
      if (parts & 2) op.residual = rig.tensor(random_values(n, 5, 2));
      if (parts) op.sum = rig.output(n);
      op.out = rig.output(n);
      op.rstd = rig.output_f32(s.rows);
      if constexpr (centres<Norm>) {
        op.beta = rig.tensor(random_values(s.width, 3));
        op.mean = rig.output_f32(s.rows);
      }
      rig.run(op);
      auto x = rig.rounded(op.in);
      if (parts) {
        const auto b = rig.rounded(op.bias), r = rig.rounded(op.residual);
        for (std::size_t i = 0; i < x.size(); ++i) {
          x[i] += (b.empty() ? 0 : b[i % s.width]) + (r.empty() ? 0 : r[i]);
        }
        EXPECT_LT(error(rig.get(op.sum), x), rig.tolerance());
        x = rig.get(op.sum);  // rounded: what is normalised
      }
      Normalised want = normalised(x, s, centres<Norm>);
      const auto g = rig.rounded(op.gamma);
      for (std::size_t i = 0; i < want.out.size(); ++i) want.out[i] *= g[i % s.width];
      if constexpr (centres<Norm>) {
        const auto b = rig.rounded(op.beta);
        for (std::size_t i = 0; i < want.out.size(); ++i) want.out[i] += b[i % s.width];
        for (std::size_t r = 0; r < want.mean.size(); ++r) EXPECT_NEAR(rig.get(op.mean)[r], want.mean[r], 1e-6);
      }
      EXPECT_LT(error(rig.get(op.out), want.out), rig.tolerance());
      EXPECT_LT(error(rig.get(op.rstd), want.rstd), 2e-6);
    }
  }
}

template <class Backward>
void check_backward(program::DType type) {
  for (const Shape s : shapes) {
    for (int variant = 0; variant < 8; ++variant) {
      const bool with_residual = variant & 1, with_bias = variant & 2, accumulate = variant & 4;
      Rig rig(type);
      const std::int64_t n = s.rows * s.width;
      const std::size_t w = s.width;
      Backward op;
      op.rows = s.rows;
      op.width = s.width;
      op.accumulate = accumulate;
      op.dout = rig.tensor(random_values(n, 1));
      op.sum = rig.tensor(random_values(n, 2, 3));
      op.gamma = rig.tensor(random_values(s.width, 3));
      const auto [h, mean, rstd] = normalised(rig.rounded(op.sum), s, centres<Backward>);
      op.rstd = rig.f32(rstd);
      if (with_residual) op.dresidual = rig.tensor(random_values(n, 4));
      op.din = rig.output(n);
      const auto parameter = [&](unsigned seed) {
        return accumulate ? rig.f32(random_values(s.width, seed)) : rig.output_f32(s.width);
      };
      op.dgamma = parameter(5);
      program::View dbeta;
      if constexpr (centres<Backward>) {
        op.mean = rig.f32(mean);
        op.dbeta = dbeta = parameter(6);
      }
      if (with_bias) op.dbias = parameter(7);
      const auto before = [&](const program::View& v) {
        return accumulate && v.present() ? rig.rounded(v) : std::vector<double>(w);
      };
      std::vector<double> want(n), want_gamma = before(op.dgamma), want_beta = before(dbeta),
                                   want_bias = before(op.dbias);
      rig.run(op);
      const auto dy = rig.rounded(op.dout), g = rig.rounded(op.gamma), dr = rig.rounded(op.dresidual);
      for (std::size_t r = 0; r < static_cast<std::size_t>(s.rows); ++r) {
        double a = 0, b = 0;
        for (std::size_t i = 0; i < w; ++i) {
          if (centres<Backward>) a += dy[r * w + i] * g[i] / static_cast<double>(w);
          b += dy[r * w + i] * g[i] * h[r * w + i] / static_cast<double>(w);
          want_gamma[i] += dy[r * w + i] * h[r * w + i];
          want_beta[i] += dy[r * w + i];
        }
        for (std::size_t i = 0; i < w; ++i) {
          want[r * w + i] = rstd[r] * (dy[r * w + i] * g[i] - a - h[r * w + i] * b);
          if (with_residual) want[r * w + i] += dr[r * w + i];
        }
      }
      EXPECT_LT(error(rig.get(op.din), want), rig.tolerance() * 2);
      EXPECT_LT(error(rig.get(op.dgamma), want_gamma), 5e-6);
      if (dbeta.present()) {
        EXPECT_LT(error(rig.get(dbeta), want_beta), 5e-6);
      }
      if (with_bias) {
        const auto rounded_din = rig.get(op.din);  // the column sum is that of what din holds
        for (std::size_t i = 0; i < rounded_din.size(); ++i) want_bias[i % w] += rounded_din[i];
        EXPECT_LT(error(rig.get(op.dbias), want_bias), 5e-6);
      }
    }
  }
}

TEST_P(LayerNorms, ForwardWithAndWithoutBiasAndResidual) {
  check_forward<program::LayerNorm>(GetParam());
}
TEST_P(LayerNorms, Backward) {
  check_backward<program::LayerNormBackward>(GetParam());
}

TEST_P(RmsNorms, ForwardWithAndWithoutBiasAndResidual) {
  check_forward<program::RmsNorm>(GetParam());
}
TEST_P(RmsNorms, Backward) {
  check_backward<program::RmsNormBackward>(GetParam());
}

}  // namespace
}  // namespace harness::test
