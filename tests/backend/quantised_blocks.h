#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "backend/numbers.h"
#include "backend/reference_scales.h"
#include "base/random.h"

// Checks Quantise with block scales against a search through all scales and codes, for the kernels of each backend.
namespace harness::test {

/// A number of a matrix of 32 x 32 cells, each with whole blocks of rows and columns and one of these kinds.
inline double number_of_kind(std::int64_t kind, std::int64_t i) {
  constexpr double largest = 3.3895313892515355e38;  // the largest bf16
  const double x = philox_normal(7, static_cast<std::uint64_t>(i));
  switch (kind % 14) {
    case 1:
      return i % 2 == 0 ? 0.0 : -0.0;
    case 2:  // subnormal floats
      return 1e-40 * x;
    case 3:
      return std::copysign(i % 7 == 0 ? largest : 1e37, x);
    case 4:  // one per cell
      return i % 1024 == 300 ? std::numeric_limits<double>::infinity() : x;
    case 5:
      return i % 1024 == 700 ? std::numeric_limits<double>::quiet_NaN() : x;
    case 6:
      return i % 1024 == 31 ? -std::numeric_limits<double>::infinity() : 1e3 * x;
    case 7:  // the largest e4m3, which just fits a scale of 1
      return std::copysign(448, x);
    case 8:
      return std::copysign(450, x);
    case 9:  // half of the largest, and a number that rounds up to it
      return i % 3 == 0 ? 224 : 223;
    case 10:
      return 1e-30 * x;
    case 11:
      return i % 40 == 5 ? 3e3 : x;
    case 12:
      return x * std::exp2(-static_cast<double>(i % 40));
    case 13:  // scales at the lower end of their range
      return std::exp2(-90.0) * x;
    default:
      return x;
  }
}

/// Returns the nearest of the codes that have `numbers`, the even one of two equally near ones. `x` is finite.
inline std::uint8_t searched_code(const std::vector<double>& numbers, double x) {
  std::uint8_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t code = 0; code < numbers.size(); ++code) {
    const double off = std::abs(numbers[code] - std::abs(x));
    if (off < least || (off == least && code % 2 == 0)) best = static_cast<std::uint8_t>(code);
    least = std::min(least, off);
  }
  return best | (std::signbit(x) ? 0x80 : 0);
}

/// Checks all codes and all bytes of scales of one output, for `rows` of `width` elements from in(row, column).
inline void expect_blocks(const std::function<double(std::int64_t, std::int64_t)>& in, std::int64_t rows,
                          std::int64_t width, program::DType type, const std::uint8_t* codes,
                          const std::vector<std::uint8_t>& scales) {
  const Fp8Format& format = backend::fp8_format(type);
  std::vector<double> numbers;
  for (int code = 0; code <= format.largest_code; ++code)
    numbers.push_back(fp8_to_float(format, static_cast<std::uint8_t>(code)));
  const double most = type == program::DType::e4m3 ? 448 : 57344;
  const BlockScales places(rows, width);
  std::vector<std::uint8_t> want(scales.size(), 0);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t block = 0; block < width / 32; ++block) {
      double largest = 0;
      bool finite = true;
      for (std::int64_t c = 32 * block; c < 32 * block + 32; ++c) {
        finite = finite && std::isfinite(in(r, c));
        largest = std::max(largest, std::abs(in(r, c)));
      }
      int exponent = -100;
      while (largest > std::ldexp(most, exponent)) ++exponent;
      if (largest == 0) exponent = 0;
      want[places(r, block)] = static_cast<std::uint8_t>(finite ? exponent + 127 : 255);
      for (std::int64_t c = 32 * block; c < 32 * block + 32; ++c) {
        const int code = finite ? searched_code(numbers, std::ldexp(in(r, c), -exponent)) : 0x7f;
        const int got = codes[r * width + c];
        ASSERT_EQ(finite ? got : got & 0x7f, code) << "row " << r << ", column " << c << ": " << in(r, c);
      }
    }
  }
  EXPECT_EQ(scales, want);
}

/// Runs an operation for matrices of several sizes and types, in both orientations together and in each alone.
inline void check_quantised_blocks(const std::function<void(const backend::Bound<program::Quantise>&)>& run) {
  struct Size {
    std::int64_t rows, width;
  };
  for (const Size& s : {Size{96, 160}, Size{160, 288}, Size{32, 32}, Size{48, 160}, Size{160, 80}}) {
    for (const program::DType from : {program::DType::f32, program::DType::bf16}) {
      for (const program::DType to : {program::DType::e4m3, program::DType::e5m2}) {
        const std::int64_t count = s.rows * s.width;
        std::vector<float> memory(count);
        const backend::Tensor in{memory.data(), from, count};
        const Numbers numbers(in);
        for (std::int64_t i = 0; i < count; ++i) {
          const std::int64_t r = i / s.width, c = i % s.width, cell = r / 32 * ((s.width + 31) / 32) + c / 32;
          numbers[i] = number_of_kind(cell, r % 32 * 32 + c % 32);
        }
        const bool plain = s.width % 32 == 0, transposed = s.rows % 32 == 0;
        for (const auto& [as_is, turned] : {std::pair{plain, transposed}, {plain, false}, {false, transposed}}) {
          if (!as_is && !turned) continue;
          SCOPED_TRACE(::testing::Message()
                       << s.rows << " x " << s.width << ", " << program::name_of(from) << " to " << program::name_of(to)
                       << (as_is ? ", plain" : "") << (turned ? ", transposed" : ""));
          std::vector<std::uint8_t> out(count, 0xab), out_transposed(count, 0xab),
              scale((s.rows + 127) / 128 * ((s.width + 127) / 128) * 512, 0xab),
              scale_transposed((s.width + 127) / 128 * ((s.rows + 127) / 128) * 512, 0xab);
          const auto scales = [](std::vector<std::uint8_t>& bytes) {
            return backend::Tensor{bytes.data(), program::DType::e8m0, static_cast<std::int64_t>(bytes.size())};
          };
          backend::Bound<program::Quantise> op;
          op.in = in;
          if (as_is) op.out = {out.data(), to, count};
          if (as_is) op.scale = scales(scale);
          if (turned) op.out_transposed = {out_transposed.data(), to, count};
          if (turned) op.scale_transposed = scales(scale_transposed);
          op.rows = s.rows;
          op.width = s.width;
          run(op);
          const auto at = [&](std::int64_t r, std::int64_t c) { return double{numbers[r * s.width + c]}; };
          if (as_is) expect_blocks(at, s.rows, s.width, to, out.data(), scale);
          if (turned)
            expect_blocks([&](auto r, auto c) { return at(c, r); }, s.width, s.rows, to, out_transposed.data(),
                          scale_transposed);
        }
      }
    }
  }
}

}  // namespace harness::test
