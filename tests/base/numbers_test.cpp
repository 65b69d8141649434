#include "base/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/floats.h"
#include "base/part.h"

namespace harness {
namespace {

// By the definition of binary16 (IEEE 754, 3.4): all its numbers, and what lies halfway between two neighbours.
TEST(F16, RoundsToTheNearestNumber) {
  const auto value = [](std::uint32_t bits) {
    const int exponent = static_cast<int>(bits >> 10 & 31u);
    const double fraction = bits & 1023u;
    return exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
  };
  for (std::uint32_t bits = 0; bits < 0x7c00u; ++bits) {  // the one beyond the last would be infinity
    const auto x = static_cast<float>(value(bits));
    ASSERT_EQ(to_float(f16{static_cast<std::uint16_t>(bits)}), x);
    ASSERT_EQ(to_float(f16{static_cast<std::uint16_t>(bits | 0x8000u)}), -x);
    ASSERT_EQ(to_f16(x).bits, bits);
    ASSERT_EQ(to_f16(-x).bits, bits | 0x8000u);
    const auto between = static_cast<float>((value(bits) + value(bits + 1)) / 2);
    ASSERT_EQ(to_f16(between).bits, bits + bits % 2) << bits;  // the even one
    ASSERT_EQ(to_f16(std::nextafter(between, 0.0f)).bits, bits);
    ASSERT_EQ(to_f16(std::nextafter(between, 1e6f)).bits, bits + 1);
  }
  EXPECT_EQ(to_f16(INFINITY).bits, 0x7c00u);
  EXPECT_EQ(to_f16(-1e30f).bits, 0xfc00u);
  EXPECT_EQ(to_float(f16{0xfc00u}), -INFINITY);
  EXPECT_TRUE(std::isnan(to_float(to_f16(NAN))));
  EXPECT_TRUE(std::isnan(to_float(f16{0x7c01u})));
}

using Words = std::array<std::uint32_t, 4>;

// The known answers of the generator's authors: Random123, tests/kat_vectors, "philox4x32 10".
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox(0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint64_t ones = ~std::uint64_t{0};
  EXPECT_EQ(philox(ones, ones, ones), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  // The digits of pi: counter 243f6a88 85a308d3 13198a2e 03707344, key a4093822 299f31d0.
  EXPECT_EQ(philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformNeverTouchesItsEnds) {
  EXPECT_GT(uniform_open(0), 0.0);
  EXPECT_LT(uniform_open(0xffffffff), 1.0);
  EXPECT_LT(uniform_open(0), 1e-7);
  EXPECT_GT(uniform_open(0xffffffff), 1 - 1e-7);
}

TEST(Philox, NormalHasTheMomentsOfANormal) {
  constexpr int count = 200000;
  double sum = 0, squares = 0, fourths = 0, neighbours = 0, previous = 0;
  for (int i = 0; i < count; ++i) {
    const double x = philox_normal(7, static_cast<std::uint64_t>(i));
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    squares += x * x;
    fourths += x * x * x * x;
    neighbours += x * previous;
    previous = x;
  }
  // Five standard deviations of each estimate: 1, sqrt 2, sqrt 96 and 1 over sqrt count.
  const double unit = 5 / std::sqrt(count);
  EXPECT_NEAR(sum / count, 0, unit);
  EXPECT_NEAR(squares / count, 1, unit * std::sqrt(2.0));
  EXPECT_NEAR(fourths / count, 3, unit * std::sqrt(96.0));
  EXPECT_NEAR(neighbours / count, 0, unit);
}

TEST(Philox, KeyCounterAndStreamAllMatter) {
  const auto base = philox(1, 2, 3);
  EXPECT_NE(base, philox(2, 2, 3));
  EXPECT_NE(base, philox(1, 3, 3));
  EXPECT_NE(base, philox(1, 2, 4));
  EXPECT_NE(base, philox(1, 2 + (std::uint64_t{1} << 32), 3));
}

TEST(Median, OddEvenOneAndNone) {
  EXPECT_EQ(median(std::vector<double>{3, 1, 2}), 2);
  EXPECT_EQ(median(std::vector<double>{4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median(std::vector<double>{7}), 7);
  EXPECT_TRUE(std::isnan(median(std::vector<double>{})));
}

TEST(Stretches, UnionMergesWhatTouchesAndDropsWhatIsEmpty) {
  EXPECT_EQ(united({{3, 4}, {0, 1}, {1, 2}, {0.5, 1.5}, {5, 5}, {7, 6}}), (Stretches{{0, 2}, {3, 4}}));
  EXPECT_EQ(united({}), Stretches{});
  EXPECT_EQ(united({{0, 10}, {1, 2}}), (Stretches{{0, 10}}));
}

TEST(Stretches, DifferenceCutsHoles) {
  EXPECT_EQ(without({{0, 10}}, {{1, 2}, {3, 4}}), (Stretches{{0, 1}, {2, 3}, {4, 10}}));
  EXPECT_EQ(without({{0, 2}, {3, 5}}, {{1, 4}}), (Stretches{{0, 1}, {4, 5}}));
  EXPECT_EQ(without({{0, 2}}, {{0, 2}}), Stretches{});
  EXPECT_EQ(without({{0, 2}}, {}), (Stretches{{0, 2}}));
  EXPECT_EQ(without({}, {{0, 2}}), Stretches{});
}

}  // namespace
}  // namespace harness
