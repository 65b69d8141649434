#pragma once

#include <bit>
#include <cstdint>

namespace harness {

/// bfloat16 storage: the upper half of a float. Conversion rounds to nearest, ties to even; NaN stays NaN.
struct bf16 {
  std::uint16_t bits;
};

inline float to_float(bf16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}
inline float to_float(float x) {
  return x;
}

/// Returns the bits of the nearest bf16 to the float with these bits. Device code uses it too.
constexpr std::uint16_t nearest_bf16_bits(std::uint32_t u) {
  if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((u >> 16) | 0x40u);
  return static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
inline bf16 to_bf16(float x) {
  return {nearest_bf16_bits(std::bit_cast<std::uint32_t>(x))};
}

/// IEEE 754 binary16 storage. Conversion rounds to nearest, ties to even, with subnormal numbers; beyond 65504 it
/// becomes infinite; NaN stays NaN.
struct f16 {
  std::uint16_t bits;
};

inline float to_float(f16 x) {
  const std::uint32_t sign = (x.bits & 0x8000u) << 16, rest = x.bits & 0x7fffu;
  constexpr float least = 0x1p-24f;  // the smallest subnormal number
  std::uint32_t magnitude = (rest << 13) + (112u << 23);
  if (rest < 0x400u) magnitude = std::bit_cast<std::uint32_t>(static_cast<float>(rest) * least);
  if (rest >= 0x7c00u) magnitude = 0x7f800000u | rest << 13;
  return std::bit_cast<float>(sign | magnitude);
}

inline f16 to_f16(float x) {
  const auto u = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = u >> 16 & 0x8000u, rest = u & 0x7fffffffu;
  std::uint32_t magnitude = (rest - (112u << 23) + 0xfffu + (rest >> 13 & 1u)) >> 13;
  if (rest < 0x38800000u) {  // below 2^-14: the addition rounds, because floats near 0.5 are spaced like subnormal f16
    magnitude = std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest) + 0.5f) - std::bit_cast<std::uint32_t>(0.5f);
  }
  if (rest >= 0x477ff000u) magnitude = 0x7c00u;  // from 65520 on
  if (rest > 0x7f800000u) magnitude = 0x7e00u | (rest >> 13 & 0x3ffu);
  return {static_cast<std::uint16_t>(sign | magnitude)};
}

/// An 8-bit floating-point format of the Open Compute Project (OCP 8-bit Floating Point Specification, revision 1.0,
/// 2023): a sign, then the exponent, then `mantissa` bits. The harness uses neither format with infinities.
struct Fp8Format {
  int mantissa;
  int least_exponent;          // the smallest of normal numbers
  std::uint32_t largest_bits;  // the largest number, as the bits of a float
  std::uint8_t largest_code;   // the largest number, in the format
};
inline constexpr Fp8Format e4m3_format{3, -6, 0x43e00000, 0x7e};   // up to 448; one NaN, no infinity ("e4m3fn")
inline constexpr Fp8Format e5m2_format{2, -14, 0x47600000, 0x7b};  // up to 57344

inline constexpr std::uint8_t fp8_nan = 0x7f;  // in both formats
inline constexpr std::uint8_t e8m0_nan = 0xff;
inline constexpr std::int64_t mx_block = 32;

// Device code uses these functions too, so they take and return floats as bits.

/// Returns the nearest number of the format, ties to even; larger magnitudes become the largest number, NaN stays NaN.
/// This is NVIDIA's cvt.rn.satfinite (PTX ISA, cvt).
constexpr std::uint8_t nearest_fp8(const Fp8Format& format, std::uint32_t bits) {
  const auto sign = static_cast<std::uint8_t>(bits >> 24 & 0x80u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return fp8_nan;
  if (magnitude >= format.largest_bits) return sign | format.largest_code;
  // The significand in units of its last bit, which subnormal numbers share with the least normal ones.
  int exponent = static_cast<int>(magnitude >> 23) - 127, dropped = 23 - format.mantissa;
  if (exponent < format.least_exponent) {
    dropped += format.least_exponent - exponent;
    exponent = format.least_exponent;
  }
  if (dropped > 24) return sign;  // less than half of the smallest number
  const std::uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
  const std::uint32_t rounded = (significand + (1u << (dropped - 1)) - 1 + (significand >> dropped & 1u)) >> dropped;
  const std::uint32_t code =
      (static_cast<std::uint32_t>(exponent - format.least_exponent) << format.mantissa) + rounded;
  return sign | static_cast<std::uint8_t>(code);
}

/// Returns the exponent of a tensor's scale: the smallest power of two that brings the tensor's largest element within
/// the format when it is divided by it. `bits`: of that element's magnitude, finite. Returns 0 for zero, and no less
/// than -100, so that every number of the format times the scale is a normal bf16.
constexpr int fp8_scale_exponent(const Fp8Format& format, std::uint32_t bits) {
  if (bits == 0) return 0;
  const std::uint32_t mantissa_mask = 0x7fffffu;
  const int exponent = static_cast<int>(bits >> 23) - static_cast<int>(format.largest_bits >> 23);
  const int needed = exponent + ((bits & mantissa_mask) > (format.largest_bits & mantissa_mask) ? 1 : 0);
  return needed < -100 ? -100 : needed;
}
/// Returns the bits of the float 2^exponent, which must be a normal number.
constexpr std::uint32_t power_of_two_bits(int exponent) {
  return static_cast<std::uint32_t>(exponent + 127) << 23;
}

/// The scale of a tensor, or of a block of one, from the bits of its largest magnitude. If an element is infinite or
/// NaN, all elements become NaN.
struct Fp8Scale {
  bool is_finite;
  int exponent;
  constexpr Fp8Scale(const Fp8Format& format, std::uint32_t largest_bits)
      : is_finite(largest_bits < 0x7f800000u), exponent(is_finite ? fp8_scale_exponent(format, largest_bits) : 0) {}
  /// The factor that elements are multiplied by, as the bits of a float.
  constexpr std::uint32_t inverse_bits() const { return is_finite ? power_of_two_bits(-exponent) : 0x7fc00000u; }
  /// The scale in E8M0: an exponent of 8 bits, biased by 127, or NaN.
  constexpr std::uint8_t e8m0() const { return is_finite ? static_cast<std::uint8_t>(exponent + 127) : e8m0_nan; }
};

// Block scales (OCP Microscaling Formats (MX) Specification, version 1.0, 2023): `mx_block` consecutive elements of a
// row share one scale in E8M0. Scales are stored in tiles of 128 rows by 4 blocks, tile after tile along the rows;
// tiles that the matrix does not fill are padded with zeros (cuBLAS' documentation, "1D Block Scaling Factors Layout").

/// Returns the bytes that the scales of `rows` rows of `width` elements take, padding included.
constexpr std::int64_t block_scales(std::int64_t rows, std::int64_t width) {
  constexpr std::int64_t tile = 128;
  return (rows + tile - 1) / tile * tile * ((width + tile - 1) / tile * tile / mx_block);
}
/// Returns the offset among them of the scale of a row's block.
constexpr std::int64_t block_scale_offset(std::int64_t row, std::int64_t block, std::int64_t width) {
  const std::int64_t tiles = (width + 127) / 128;
  return (row / 128 * tiles + block / 4) * 512 + row % 32 * 16 + row % 128 / 32 * 4 + block % 4;
}

/// 2^(code - 127).
inline float e8m0_to_float(std::uint8_t code) {
  if (code == 0) return 0x1p-127F;
  return std::bit_cast<float>(code == e8m0_nan ? 0x7fc00000u : static_cast<std::uint32_t>(code) << 23);
}

inline float fp8_to_float(const Fp8Format& format, std::uint8_t code) {
  const std::uint32_t sign = (code & 0x80u) << 24, magnitude = code & 0x7fu;
  if (magnitude > format.largest_code) return std::bit_cast<float>(sign | 0x7fc00000u);
  const auto field = static_cast<int>(magnitude >> format.mantissa);
  const std::uint32_t fraction = magnitude & ((1u << format.mantissa) - 1u);
  const float unit = std::bit_cast<float>(power_of_two_bits(format.least_exponent - format.mantissa));
  const float least = static_cast<float>(fraction) * unit;  // if subnormal
  if (field == 0) return sign != 0 ? -least : least;
  const int exponent = format.least_exponent + field - 1;
  return std::bit_cast<float>(sign | power_of_two_bits(exponent) | fraction << (23 - format.mantissa));
}

}  // namespace harness
