// Factors of products in 8-bit floats against the bounds of docs/method.md ("How far fp8 may be from bf16").
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

// A quantised tensor, and the numbers that its codes represent.
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

// A distribution of a factor's elements. The largest element sets the scale of all.
struct Kind {
  const char* name;
  std::function<double(double normal, std::int64_t i)> value;
};
const std::vector<Kind> kinds{
    {"random", [](double x, std::int64_t) { return x; }},
    {"of one sign", [](double x, std::int64_t) { return std::abs(x) + 0.5; }},
    {"tiny", [](double x, std::int64_t) { return 1e-24 * x; }},
    {"huge", [](double x, std::int64_t) { return 1e24 * x; }},
    {"with an outlier", [](double x, std::int64_t i) { return i == 5 ? 3e3 : x; }},
    {"of all magnitudes", [](double x, std::int64_t i) { return x * std::pow(2.0, -static_cast<double>(i % 40)); }}};

struct Bounds {
  double unit, root_mean_square, below;  // relative errors of one rounding; absolute, over the largest element
};
Bounds bounds_of(DType type) {
  return type == DType::e4m3 ? Bounds{0x1p-4, 0.212 * 0x1p-3, 0x1p-17} : Bounds{0x1p-3, 0.212 * 0x1p-2, 0x1p-31};
}

double largest_of(const std::vector<double>& values) {
  double most = 0;
  for (const double x : values) most = std::max(most, std::abs(x));
  return most;
}

std::vector<double> made(const Kind& kind, std::int64_t count) {
  std::vector<double> values = random_values(count, 1);
  for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(kind.value(values[i], i));
  return values;
}

TEST(Quantised, EachNumberIsWithinOneRounding) {
  constexpr std::int64_t rows = 48, width = 80;
  for (const Kind& kind : kinds) {
    for (const DType type : {DType::e4m3, DType::e5m2}) {
      const std::vector<double> values = made(kind, rows * width);
      const Codes c = quantised(values, rows, width, type);
      const Bounds b = bounds_of(type);
      const double below = b.below * largest_of(values);
      double squares = 0, expected = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double off = std::abs(c.numbers[i] - values[i]);
        EXPECT_LE(off, b.unit * std::abs(values[i]) + below) << kind.name << " " << values[i];
        squares += off * off;
        expected += std::pow(b.root_mean_square * values[i], 2) + below * below;
      }
      // The factor 1.25 is for kinds with few large elements.
      EXPECT_LE(std::sqrt(squares), 1.25 * std::sqrt(expected)) << kind.name;
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

TEST(QuantisedBlocks, AreThoseOfASearchThroughAllScalesAndCodes) {
  check_quantised_blocks([](const backend::Bound<program::Quantise>& op) { cpu::run(op); });
}

}  // namespace
}  // namespace harness::test
