#include "rig.h"

namespace harness::test {
namespace {

class LayerNorms : public PerType {};
INSTANTIATE_TEST_SUITE_P(Types, LayerNorms, both_types(), type_name);
class RmsNorms : public PerType {};
INSTANTIATE_TEST_SUITE_P(Types, RmsNorms, both_types(), type_name);

struct Shape {
  std::int64_t rows, width;
};
constexpr Shape shapes[] = {{1, 16}, {130, 64}, {67, 83}, {9, 1027}};

std::vector<double> normalised(const std::vector<double>& x, Shape s, std::vector<double>& mean,
                               std::vector<double>& rstd) {
  std::vector<double> out(x.size());
  for (std::int64_t r = 0; r < s.rows; ++r) {
    double m = 0, v = 0;
    for (std::int64_t i = 0; i < s.width; ++i) m += x[r * s.width + i];
    m /= static_cast<double>(s.width);
    for (std::int64_t i = 0; i < s.width; ++i) v += std::pow(x[r * s.width + i] - m, 2);
    const double q = 1 / std::sqrt(v / static_cast<double>(s.width) + 1e-5);
    mean.push_back(m);
    rstd.push_back(q);
    for (std::int64_t i = 0; i < s.width; ++i) {
      const std::size_t at = r * s.width + i;
      out[at] = (x[at] - m) * q;
    }
  }
  return out;
}

TEST_P(LayerNorms, ForwardWithAndWithoutBiasAndResidual) {
  for (const Shape s : shapes) {
    for (int parts = 0; parts < 4; ++parts) {
      Rig rig(GetParam());
      const std::int64_t n = s.rows * s.width;
      const program::View in = rig.tensor(random_values(n, 1)), gamma = rig.tensor(random_values(s.width, 2)),
                          beta = rig.tensor(random_values(s.width, 3));
      const program::View bias = parts & 1 ? rig.tensor(random_values(s.width, 4)) : program::View{};
      const program::View residual = parts & 2 ? rig.tensor(random_values(n, 5, 2)) : program::View{};
      const program::View sum = parts ? rig.output(n) : program::View{};
      const program::View out = rig.output(n), mean = rig.output_f32(s.rows), rstd = rig.output_f32(s.rows);
      rig.run(program::LayerNorm{in, bias, residual, gamma, beta, sum, out, mean, rstd, s.rows, s.width});
      auto x = rig.rounded(in);
      if (parts) {
        const auto b = rig.rounded(bias), r = rig.rounded(residual);
        for (std::size_t i = 0; i < x.size(); ++i) {
          x[i] += (b.empty() ? 0 : b[i % s.width]) + (r.empty() ? 0 : r[i]);
        }
        EXPECT_LT(error(rig.get(sum), x), rig.tolerance());
        x = rig.get(sum);  // rounded: what is normalised
      }
      std::vector<double> m, q;
      auto want = normalised(x, s, m, q);
      const auto g = rig.rounded(gamma), b = rig.rounded(beta);
      for (std::size_t i = 0; i < want.size(); ++i) {
        const std::size_t c = i % s.width;
        want[i] = want[i] * g[c] + b[c];
      }
      EXPECT_LT(error(rig.get(out), want), rig.tolerance());
      for (std::size_t r = 0; r < m.size(); ++r) EXPECT_NEAR(rig.get(mean)[r], m[r], 1e-6);
      EXPECT_LT(error(rig.get(rstd), q), 2e-6);
    }
  }
}

std::vector<double> scaled(const std::vector<double>& x, Shape s, std::vector<double>& rstd) {
  std::vector<double> out(x.size());
  for (std::int64_t r = 0; r < s.rows; ++r) {
    double squares = 0;
    for (std::int64_t i = 0; i < s.width; ++i) squares += std::pow(x[r * s.width + i], 2);
    rstd.push_back(1 / std::sqrt(squares / static_cast<double>(s.width) + 1e-5));
    for (std::int64_t i = 0; i < s.width; ++i) out[r * s.width + i] = x[r * s.width + i] * rstd.back();
  }
  return out;
}

TEST_P(RmsNorms, ForwardWithAndWithoutBiasAndResidual) {
  for (const Shape s : shapes) {
    for (int parts = 0; parts < 4; ++parts) {
      Rig rig(GetParam());
      const std::int64_t n = s.rows * s.width;
      std::vector<double> off_centre = random_values(n, 1);
      for (double& x : off_centre) x += 0.5;  // which a mean would take off
      const program::View in = rig.tensor(off_centre), gamma = rig.tensor(random_values(s.width, 2));
      const program::View bias = parts & 1 ? rig.tensor(random_values(s.width, 4)) : program::View{};
      const program::View residual = parts & 2 ? rig.tensor(random_values(n, 5, 2)) : program::View{};
      const program::View sum = parts ? rig.output(n) : program::View{};
      const program::View out = rig.output(n), rstd = rig.output_f32(s.rows);
      rig.run(program::RmsNorm{in, bias, residual, gamma, sum, out, rstd, s.rows, s.width});
      auto x = rig.rounded(in);
      if (parts) {
        const auto b = rig.rounded(bias), r = rig.rounded(residual);
        for (std::size_t i = 0; i < x.size(); ++i) {
          x[i] += (b.empty() ? 0 : b[i % s.width]) + (r.empty() ? 0 : r[i]);
        }
        EXPECT_LT(error(rig.get(sum), x), rig.tolerance());
        x = rig.get(sum);
      }
      std::vector<double> q;
      auto want = scaled(x, s, q);
      const auto g = rig.rounded(gamma);
      for (std::size_t i = 0; i < want.size(); ++i) want[i] *= g[i % s.width];
      EXPECT_LT(error(rig.get(out), want), rig.tolerance());
      EXPECT_LT(error(rig.get(rstd), q), 2e-6);
    }
  }
}

TEST_P(RmsNorms, Backward) {
  for (const Shape s : shapes) {
    for (int variant = 0; variant < 8; ++variant) {
      const bool with_residual = variant & 1, with_bias = variant & 2, accumulate = variant & 4;
      Rig rig(GetParam());
      const std::int64_t n = s.rows * s.width;
      const std::size_t w = s.width;
      const program::View dout = rig.tensor(random_values(n, 1)), x = rig.tensor(random_values(n, 2, 3)),
                          gamma = rig.tensor(random_values(s.width, 3));
      std::vector<double> rstd_values;
      const auto h = scaled(rig.rounded(x), s, rstd_values);
      const program::View rstd = rig.f32(rstd_values);
      const program::View dresidual = with_residual ? rig.tensor(random_values(n, 4)) : program::View{};
      const program::View din = rig.output(n);
      const auto parameter = [&](unsigned seed) {
        return accumulate ? rig.f32(random_values(s.width, seed)) : rig.output_f32(s.width);
      };
      const program::View dgamma = parameter(5), dbias = with_bias ? parameter(7) : program::View{};
      rig.run(
          program::RmsNormBackward{dout, x, gamma, rstd, dresidual, din, dgamma, dbias, s.rows, s.width, accumulate});
      const auto dy = rig.rounded(dout), g = rig.rounded(gamma), dr = rig.rounded(dresidual);
      std::vector<double> want(dy.size()), want_gamma(w), want_bias(w);
      if (accumulate) {
        want_gamma = rig.rounded(dgamma);
        if (with_bias) want_bias = rig.rounded(dbias);
      }
      for (std::size_t r = 0; r < static_cast<std::size_t>(s.rows); ++r) {
        double b = 0;
        for (std::size_t i = 0; i < w; ++i) {
          b += dy[r * w + i] * g[i] * h[r * w + i] / static_cast<double>(w);
          want_gamma[i] += dy[r * w + i] * h[r * w + i];
        }
        for (std::size_t i = 0; i < w; ++i) {
          want[r * w + i] = rstd_values[r] * (dy[r * w + i] * g[i] - h[r * w + i] * b);
          if (with_residual) want[r * w + i] += dr[r * w + i];
        }
      }
      EXPECT_LT(error(rig.get(din), want), rig.tolerance() * 2);
      EXPECT_LT(error(rig.get(dgamma), want_gamma), 5e-6);
      if (with_bias) {
        const auto rounded_din = rig.get(din);
        for (std::size_t i = 0; i < rounded_din.size(); ++i) want_bias[i % w] += rounded_din[i];
        EXPECT_LT(error(rig.get(dbias), want_bias), 5e-6);
      }
    }
  }
}

TEST_P(LayerNorms, Backward) {
  for (const Shape s : shapes) {
    for (int variant = 0; variant < 8; ++variant) {
      const bool with_residual = variant & 1, with_bias = variant & 2, accumulate = variant & 4;
      Rig rig(GetParam());
      const std::int64_t n = s.rows * s.width;
      const std::size_t w = s.width;
      const program::View dout = rig.tensor(random_values(n, 1)), x = rig.tensor(random_values(n, 2, 3)),
                          gamma = rig.tensor(random_values(s.width, 3));
      std::vector<double> mean_values, rstd_values;
      const auto h = normalised(rig.rounded(x), s, mean_values, rstd_values);
      const program::View mean = rig.f32(mean_values), rstd = rig.f32(rstd_values);
      const program::View dresidual = with_residual ? rig.tensor(random_values(n, 4)) : program::View{};
      const program::View din = rig.output(n);
      const auto parameter = [&](unsigned seed) {
        return accumulate ? rig.f32(random_values(s.width, seed)) : rig.output_f32(s.width);
      };
      const program::View dgamma = parameter(5), dbeta = parameter(6),
                          dbias = with_bias ? parameter(7) : program::View{};
      rig.run(program::LayerNormBackward{dout, x, gamma, mean, rstd, dresidual, din, dgamma, dbeta, dbias, s.rows,
                                         s.width, accumulate});
      const auto dy = rig.rounded(dout), g = rig.rounded(gamma), dr = rig.rounded(dresidual);
      std::vector<double> want(dy.size()), want_gamma(w), want_beta(w), want_bias(w);
      if (accumulate) {
        want_gamma = rig.rounded(dgamma);
        want_beta = rig.rounded(dbeta);
        if (with_bias) want_bias = rig.rounded(dbias);
      }
      for (std::size_t r = 0; r < static_cast<std::size_t>(s.rows); ++r) {
        double a = 0, b = 0;
        for (std::size_t i = 0; i < w; ++i) {
          a += dy[r * w + i] * g[i] / static_cast<double>(w);
          b += dy[r * w + i] * g[i] * h[r * w + i] / static_cast<double>(w);
          want_gamma[i] += dy[r * w + i] * h[r * w + i];
          want_beta[i] += dy[r * w + i];
        }
        for (std::size_t i = 0; i < w; ++i) {
          want[r * w + i] = rstd_values[r] * (dy[r * w + i] * g[i] - a - h[r * w + i] * b);
          if (with_residual) want[r * w + i] += dr[r * w + i];
        }
      }
      EXPECT_LT(error(rig.get(din), want), rig.tolerance() * 2);
      EXPECT_LT(error(rig.get(dgamma), want_gamma), 5e-6);
      EXPECT_LT(error(rig.get(dbeta), want_beta), 5e-6);
      if (with_bias) {
        const auto rounded_din = rig.get(din);  // the column sum is that of what din holds
        for (std::size_t i = 0; i < rounded_din.size(); ++i) want_bias[i % w] += rounded_din[i];
        EXPECT_LT(error(rig.get(dbias), want_bias), 5e-6);
      }
    }
  }
}

}  // namespace
}  // namespace harness::test
