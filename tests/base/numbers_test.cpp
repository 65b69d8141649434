#include "base/median.h"
#include "base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/floats.h"
#include "base/part.h"

namespace harness {
namespace {

// All numbers of binary16 by its definition (IEEE 754, 3.4), and the midpoints between neighbours.
TEST(F16, RoundsToTheNearestNumber) {
  const auto value = [](std::uint32_t bits) {
    const int exponent = static_cast<int>(bits >> 10 & 31u);
    const double fraction = bits & 1023u;
    return exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
  };
  for (std::uint32_t bits = 0; bits < 0x7c00u; ++bits) {  // the one after the last would be infinity
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

// Known answers from the generator's authors: Random123, tests/kat_vectors, "philox4x32 10".
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

std::uint32_t bits_of(float x) {
  return std::bit_cast<std::uint32_t>(x);
}

TEST(Fp8, EveryCodeIsTheNumberOfTheSpecification) {
  EXPECT_EQ(fp8_to_float(e4m3_format, 0x7e), 448);
  EXPECT_EQ(fp8_to_float(e4m3_format, 0x08), 0x1p-6f);
  EXPECT_EQ(fp8_to_float(e4m3_format, 0x81), -0x1p-9f);
  EXPECT_EQ(fp8_to_float(e5m2_format, 0x7b), 57344);
  EXPECT_EQ(fp8_to_float(e5m2_format, 0x04), 0x1p-14f);
  EXPECT_EQ(fp8_to_float(e5m2_format, 0x01), 0x1p-16f);
  for (const Fp8Format& format : {e4m3_format, e5m2_format}) {
    for (int code = 0; code < 256; ++code) {
      const float x = fp8_to_float(format, static_cast<std::uint8_t>(code));
      const bool number = (code & 0x7f) <= format.largest_code;
      EXPECT_EQ(std::isnan(x), !number) << code;
      EXPECT_EQ(nearest_fp8(format, bits_of(x)), number ? code : int{fp8_nan}) << code;
    }
  }
}

// Compared with a search through all codes: the nearest, and the even one of a tie.
TEST(Fp8, RoundsToTheNearestNumber) {
  for (const Fp8Format& format : {e4m3_format, e5m2_format}) {
    const std::uint32_t most = bits_of(2 * std::bit_cast<float>(format.largest_bits));
    for (std::uint32_t bits = 0x30000000u; bits < most; bits += 65521) {  // from 2^-31; both halves of ties
      for (const std::uint32_t at : {bits, bits & 0xfff00000u, bits & 0xfff80000u}) {
        const double x = std::bit_cast<float>(at);
        int best = 0;
        double least = std::numeric_limits<double>::infinity();
        for (int code = 0; code <= format.largest_code; ++code) {
          const double off = std::abs(double{fp8_to_float(format, static_cast<std::uint8_t>(code))} - x);
          if (off < least || (off == least && code % 2 == 0)) best = code;
          least = std::min(least, off);
        }
        ASSERT_EQ(nearest_fp8(format, at), best) << x;
        ASSERT_EQ(nearest_fp8(format, at | 0x80000000u), best | 0x80) << x;
      }
    }
    EXPECT_EQ(nearest_fp8(format, bits_of(std::numeric_limits<float>::infinity())), format.largest_code);
    EXPECT_EQ(nearest_fp8(format, bits_of(std::numeric_limits<float>::quiet_NaN())), fp8_nan);
  }
}

TEST(Fp8, TheScaleIsTheSmallestPowerOfTwoThatFits) {
  for (const Fp8Format& format : {e4m3_format, e5m2_format}) {
    const float most = std::bit_cast<float>(format.largest_bits);
    EXPECT_EQ(fp8_scale_exponent(format, 0), 0);
    EXPECT_EQ(fp8_scale_exponent(format, bits_of(most)), 0);
    EXPECT_EQ(fp8_scale_exponent(format, bits_of(std::nextafter(most, 2 * most))), 1);
    EXPECT_EQ(fp8_scale_exponent(format, bits_of(most / 2)), -1);
    EXPECT_EQ(fp8_scale_exponent(format, bits_of(1e-42F)), -100);
    for (float x = 1e-20F; x < 1e20F; x *= 1.37F) {
      const double scaled = std::ldexp(x, -fp8_scale_exponent(format, bits_of(x)));
      EXPECT_LE(scaled, most) << x;
      EXPECT_GT(2 * scaled, most) << x;
    }
  }
}

TEST(BlockScales, FillWholeTilesOf128RowsAnd4Blocks) {
  EXPECT_EQ(block_scales(130, 160), 4 * 512);
  EXPECT_EQ(block_scales(128, 128), 512);
  EXPECT_EQ(block_scales(16, 32), 512);
}

TEST(BlockScales, AreBiasedExponents) {
  EXPECT_EQ(e8m0_to_float(127), 1);
  EXPECT_EQ(e8m0_to_float(130), 8);
  EXPECT_EQ(e8m0_to_float(0), 0x1p-127F);
  EXPECT_EQ(e8m0_to_float(1), 0x1p-126F);
  EXPECT_EQ(e8m0_to_float(254), 0x1p127F);
  EXPECT_TRUE(std::isnan(e8m0_to_float(255)));
  for (const float largest : {0.F, 1.F, 448.F, 449.F, 1e-42F, 3e38F}) {
    const Fp8Scale scale(e4m3_format, bits_of(largest));
    EXPECT_EQ(e8m0_to_float(scale.e8m0()) * std::bit_cast<float>(scale.inverse_bits()), 1) << largest;
    EXPECT_LE(largest, 448 * e8m0_to_float(scale.e8m0())) << largest;
  }
  const Fp8Scale none(e4m3_format, bits_of(std::numeric_limits<float>::infinity()));
  EXPECT_EQ(none.e8m0(), 255);
  EXPECT_TRUE(std::isnan(std::bit_cast<float>(none.inverse_bits())));
}

}  // namespace
}  // namespace harness
