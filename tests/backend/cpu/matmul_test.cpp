#include "rig.h"

namespace harness::test {
namespace {

class Matmuls : public PerType {};
INSTANTIATE_TEST_SUITE_P(Types, Matmuls, all_types(), type_name);

double element(const std::vector<double>& m, std::int64_t i, std::int64_t j, std::int64_t rows, std::int64_t columns,
               bool transposed) {
  return m[transposed ? j * rows + i : i * columns + j];
}

program::Matmul shaped(std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_a = false,
                       bool transpose_b = false) {
  program::Matmul op;
  op.m = m;
  op.n = n;
  op.k = k;
  op.transpose_a = transpose_a;
  op.transpose_b = transpose_b;
  return op;
}

std::vector<double> product(const program::Matmul& op, const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> out(op.m * op.n);
  for (std::int64_t i = 0; i < op.m; ++i) {
    for (std::int64_t j = 0; j < op.n; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < op.k; ++k) {
        sum += element(a, i, k, op.m, op.k, op.transpose_a) * element(b, k, j, op.k, op.n, op.transpose_b);
      }
      out[i * op.n + j] = sum;
    }
  }
  return out;
}

struct Product {
  std::int64_t m, n, k;
};
constexpr Product cases[] = {{64, 48, 96}, {33, 17, 65}, {1, 130, 7}, {70, 1, 70}, {128, 256, 64}};

TEST_P(Matmuls, EveryTransposition) {
  for (const Product c : cases) {
    for (int t = 0; t < 4; ++t) {
      Rig rig(GetParam());
      program::Matmul op = shaped(c.m, c.n, c.k, (t & 1) != 0, (t & 2) != 0);
      op.a = rig.tensor(random_values(c.m * c.k, 1));
      op.b = rig.tensor(random_values(c.k * c.n, 2));
      op.out = rig.output(c.m * c.n);
      rig.run(op);
      EXPECT_LT(error(rig.get(op.out), product(op, rig.rounded(op.a), rig.rounded(op.b))), rig.tolerance())
          << c.m << " " << c.n << " " << c.k << " " << t;
    }
  }
}

TEST_P(Matmuls, Bias) {
  Rig rig(GetParam());
  program::Matmul op = shaped(37, 70, 40, false, true);
  op.a = rig.tensor(random_values(37 * 40, 1));
  op.b = rig.tensor(random_values(70 * 40, 2));
  op.bias = rig.tensor(random_values(70, 3, 5));
  op.out = rig.output(37 * 70);
  rig.run(op);
  auto want = product(op, rig.rounded(op.a), rig.rounded(op.b));
  const auto bias = rig.rounded(op.bias);
  for (std::size_t i = 0; i < want.size(); ++i) want[i] += bias[i % 70];
  EXPECT_LT(error(rig.get(op.out), want), rig.tolerance());
}

// The residual stream is added as it is, and the sum is rounded once.
TEST_P(Matmuls, BiasAndResidual) {
  for (const bool bias : {false, true}) {
    for (const Product c : cases) {
      Rig rig(GetParam());
      program::Matmul op = shaped(c.m, c.n, c.k, false, true);
      op.a = rig.tensor(random_values(c.m * c.k, 1));
      op.b = rig.tensor(random_values(c.n * c.k, 2));
      if (bias) op.bias = rig.tensor(random_values(c.n, 3, 5));
      op.add = rig.tensor(random_values(c.m * c.n, 4, 5));
      op.out = rig.output(c.m * c.n);
      rig.run(op);
      auto want = product(op, rig.rounded(op.a), rig.rounded(op.b));
      const auto residual = rig.rounded(op.add);
      for (std::size_t i = 0; i < want.size(); ++i) want[i] += residual[i];
      if (bias) {
        const auto b = rig.rounded(op.bias);
        for (std::size_t i = 0; i < want.size(); ++i) want[i] += b[i % c.n];
      }
      EXPECT_LT(error(rig.get(op.out), want), rig.tolerance()) << c.m << " " << c.n << " " << c.k << " " << bias;
    }
  }
}

// A weight gradient: f32 whatever the type of its factors, added to what earlier micro-batches left.
TEST_P(Matmuls, WeightGradientAccumulatesInF32) {
  for (const bool accumulate : {false, true}) {
    Rig rig(GetParam());
    program::Matmul op = shaped(45, 38, 90, true);
    op.accumulate = accumulate;
    op.a = rig.tensor(random_values(45 * 90, 1));
    op.b = rig.tensor(random_values(38 * 90, 2));
    op.out = accumulate ? rig.f32(random_values(45 * 38, 3)) : rig.output_f32(45 * 38);
    op.bias_gradient = accumulate ? rig.f32(random_values(45, 4)) : rig.output_f32(45);
    rig.run(op);
    auto want = product(op, rig.rounded(op.a), rig.rounded(op.b));
    std::vector<double> sums(45);
    const auto a = rig.rounded(op.a);
    for (std::size_t i = 0; i < a.size(); ++i) sums[i % 45] += a[i];
    if (accumulate) {
      const auto before = rig.rounded(op.out), sums_before = rig.rounded(op.bias_gradient);
      for (std::size_t i = 0; i < want.size(); ++i) want[i] += before[i];
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += sums_before[i];
    }
    EXPECT_LT(error(rig.get(op.out), want), 2e-6);
    EXPECT_LT(error(rig.get(op.bias_gradient), sums), 2e-6);
  }
}

TEST_P(Matmuls, GeluEpilogues) {
  Rig rig(GetParam());
  program::Matmul op = shaped(20, 35, 30, false, true);
  op.epilogue = program::Epilogue::gelu;
  op.a = rig.tensor(random_values(20 * 30, 1));
  op.b = rig.tensor(random_values(35 * 30, 2, 0.3));
  op.bias = rig.tensor(random_values(35, 3));
  op.aux = rig.output(20 * 35);
  op.out = rig.output(20 * 35);
  rig.run(op);
  auto x = product(op, rig.rounded(op.a), rig.rounded(op.b));
  const auto bias = rig.rounded(op.bias);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += bias[i % 35];
  EXPECT_LT(error(rig.get(op.aux), x), rig.tolerance());
  x = rig.get(op.aux);
  for (double& v : x) v = gelu_of(v);
  EXPECT_LT(error(rig.get(op.out), x), rig.tolerance());

  Rig second(GetParam());
  program::Matmul back = shaped(20, 35, 30);
  back.epilogue = program::Epilogue::gelu_backward;
  back.a = second.tensor(random_values(20 * 30, 1));
  back.b = second.tensor(random_values(35 * 30, 2));
  back.aux = second.tensor(random_values(20 * 35, 4));
  back.out = second.output(20 * 35);
  second.run(back);
  auto want = product(back, second.rounded(back.a), second.rounded(back.b));
  const auto aux = second.rounded(back.aux);
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double h = 1e-5;
    want[i] *= (gelu_of(aux[i] + h) - gelu_of(aux[i] - h)) / (2 * h);
  }
  EXPECT_LT(error(second.get(back.out), want), second.tolerance() * 2);
}

TEST(MatmulThreads, Agree) {
  std::vector<std::vector<double>> results;
  for (const int threads : {1, 2, 3}) {
    Rig rig(program::DType::f32, threads);
    program::Matmul op = shaped(150, 130, 110);
    op.a = rig.tensor(random_values(150 * 110, 1));
    op.b = rig.tensor(random_values(130 * 110, 2));
    op.out = rig.output(150 * 130);
    rig.run(op);
    results.push_back(rig.get(op.out));
  }
  EXPECT_LT(error(results[1], results[0]), 1e-6);
  EXPECT_LT(error(results[2], results[0]), 1e-6);
}

}  // namespace
}  // namespace harness::test
