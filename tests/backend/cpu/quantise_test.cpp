// Products of factors in 8-bit floats, held against the bounds of docs/method.md ("How far fp8 may be from bf16").
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "backend/cpu/kernels.h"
#include "backend/quantised_blocks.h"
#include "base/floats.h"
#include "rig.h"

namespace harness::test {
namespace {

using program::DType;

// A tensor as it is quantised, and the numbers that its codes stand for.
struct Codes {
  std::vector<std::uint8_t> plain, transposed;
  float scale = 0;
  std::vector<double> numbers;
};

Codes quantised(const std::vector<double>& values, std::int64_t rows, std::int64_t width, DType type) {
  std::vector<float> in(values.begin(), values.end());
  const auto count = static_cast<std::int64_t>(in.size());
  Codes c;
  c.plain.resize(in.size());
  c.transposed.resize(in.size());
  backend::Bound<program::Quantise> op;
  op.in = {in.data(), DType::f32, count};
  op.out = {c.plain.data(), type, count};
  op.out_transposed = {c.transposed.data(), type, count};
  op.scale = {&c.scale, DType::f32, 1};
  op.rows = rows;
  op.width = width;
  cpu::run(op);
  std::vector<bf16> wide(in.size());
  cpu::widen(op.out, op.scale, width, wide.data());
  for (const bf16 x : wide) c.numbers.push_back(to_float(x));
  return c;
}

// The numbers of a factor: the largest element decides on the scale of all.
struct Kind {
  const char* name;
  std::function<double(double normal, std::int64_t i)> value;
};
const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {"random", [](double x, std::int64_t) { return x; }},
      {"of one sign", [](double x, std::int64_t) { return std::abs(x) + 0.5; }},
      {"tiny", [](double x, std::int64_t) { return 1e-24 * x; }},
      {"huge", [](double x, std::int64_t) { return 1e24 * x; }},
      {"with an outlier", [](double x, std::int64_t i) { return i == 5 ? 3e3 : x; }},
      {"of all magnitudes", [](double x, std::int64_t i) { return x * std::pow(2.0, -static_cast<double>(i % 40)); }}};
  return all;
}

struct Bounds {
  double unit, root_mean_square, below;  // relative, of one rounding; absolute, of the largest element
};
Bounds bounds_of(DType type) {
  return type == DType::e4m3 ? Bounds{0x1p-4, 0.212 * 0x1p-3, 0x1p-17} : Bounds{0x1p-3, 0.212 * 0x1p-2, 0x1p-31};
}

double largest_of(const std::vector<double>& values) {
  double most = 0;
  for (const double x : values) most = std::max(most, std::abs(x));
  return most;
}

std::vector<double> made(const Kind& kind, std::int64_t count, unsigned seed) {
  std::vector<double> values = random_values(count, seed);
  for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(kind.value(values[i], i));
  return values;
}

TEST(Quantised, EachNumberIsWithinOneRounding) {
  constexpr std::int64_t rows = 48, width = 80;
  for (const Kind& kind : kinds()) {
    for (const DType type : {DType::e4m3, DType::e5m2}) {
      const std::vector<double> values = made(kind, rows * width, 1);
      const Codes c = quantised(values, rows, width, type);
      const Bounds b = bounds_of(type);
      const double below = b.below * largest_of(values);
      for (std::size_t i = 0; i < values.size(); ++i) {
        EXPECT_LE(std::abs(c.numbers[i] - values[i]), b.unit * std::abs(values[i]) + below)
            << kind.name << " " << values[i];
      }
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t w = 0; w < width; ++w) ASSERT_EQ(c.transposed[w * rows + r], c.plain[r * width + w]);
      }
    }
  }
}

TEST(Quantised, AnInfiniteElementMakesAllOfItNaN) {
  std::vector<double> values(256, 1.0);
  values[77] = INFINITY;
  for (const double x : quantised(values, 16, 16, DType::e4m3).numbers) EXPECT_TRUE(std::isnan(x));
  EXPECT_EQ(quantised(std::vector<double>(256, 0.0), 16, 16, DType::e4m3).scale, 1);
}

TEST(Quantised, ProductsAreWithinTheirBounds) {
  constexpr std::int64_t m = 32, n = 48;
  for (const std::int64_t k : {64, 1024}) {
    for (const Kind& kind : kinds()) {
      for (const DType of_a : {DType::e4m3, DType::e5m2}) {
        const std::vector<double> a = made(kind, m * k, 1), b = made(kinds().front(), n * k, 2);
        const Codes qa = quantised(a, m, k, of_a), qb = quantised(b, n, k, DType::e4m3);
        const Bounds ba = bounds_of(of_a), bb = bounds_of(DType::e4m3);
        const double below_a = ba.below * largest_of(a), below_b = bb.below * largest_of(b);
        double squares = 0, walk = 0;
        for (std::int64_t i = 0; i < m; ++i) {
          for (std::int64_t j = 0; j < n; ++j) {
            double off = 0, worst = 0;
            for (std::int64_t l = 0; l < k; ++l) {
              const double x = a[i * k + l], y = b[j * k + l];
              off += qa.numbers[i * k + l] * qb.numbers[j * k + l] - x * y;
              const double off_x = ba.unit * std::abs(x) + below_a, off_y = bb.unit * std::abs(y) + below_b;
              worst += off_x * std::abs(y) + off_y * std::abs(x) + off_x * off_y;
              const double r = std::hypot(ba.root_mean_square, bb.root_mean_square);
              walk += std::pow(r * x * y, 2) + std::pow(below_a * y, 2) + std::pow(below_b * x, 2);
            }
            ASSERT_LE(std::abs(off), worst) << kind.name;
            squares += off * off;
          }
        }
        // 1536 sums, some of which share an outlier or few large elements.
        EXPECT_LE(std::sqrt(squares), 1.25 * std::sqrt(walk)) << kind.name << ", k " << k;
      }
    }
  }
}

TEST(QuantisedBlocks, AreThoseOfASearchThroughAllScalesAndCodes) {
  check_quantised_blocks([](const backend::Bound<program::Quantise>& op) { cpu::run(op); });
}

}  // namespace
}  // namespace harness::test
