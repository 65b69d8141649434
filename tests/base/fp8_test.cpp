#include "base/floats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

namespace harness {
namespace {

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

// Against a search through all codes: the nearest, of two equally near ones the even one.
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

// Of a matrix of 130 rows and 5 blocks in a row: two tiles beside each other, and two below for two rows.
TEST(BlockScales, LieInTilesOf128RowsAnd4Blocks) {
  EXPECT_EQ(block_scales(130, 160), 4 * 512);
  EXPECT_EQ(block_scales(128, 128), 512);
  EXPECT_EQ(block_scales(16, 32), 512);
  struct Place {
    std::int64_t row, block, offset;
  };
  for (const Place& p :
       {Place{0, 0, 0}, Place{0, 1, 1}, Place{0, 3, 3}, Place{0, 4, 512}, Place{1, 0, 16}, Place{31, 0, 496},
        Place{31, 3, 499}, Place{32, 0, 4}, Place{33, 2, 22}, Place{64, 0, 8}, Place{96, 0, 12}, Place{127, 3, 511},
        Place{127, 4, 1020}, Place{128, 0, 1024}, Place{128, 4, 1536}, Place{129, 1, 1041}, Place{129, 4, 1552}}) {
    EXPECT_EQ(block_scale_offset(p.row, p.block, 160), p.offset) << p.row << ", " << p.block;
  }
  std::set<std::int64_t> places;
  for (std::int64_t row = 0; row < 130; ++row) {
    for (std::int64_t block = 0; block < 5; ++block) places.insert(block_scale_offset(row, block, 160));
  }
  EXPECT_EQ(places.size(), 130u * 5);
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
