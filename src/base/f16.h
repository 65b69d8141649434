#pragma once

#include <bit>
#include <cstdint>

namespace harness {

/// IEEE 754 binary16 storage. Conversion rounds to nearest, ties to even, with subnormal numbers; beyond 65504 it
/// becomes infinite; NaN stays NaN.
struct f16 {
  std::uint16_t bits;
};

inline float to_float(f16 x) {
  const std::uint32_t sign = (x.bits & 0x8000u) << 16, rest = x.bits & 0x7fffu;
  constexpr float least = 0x1p-24f;  // of the subnormal numbers
  std::uint32_t magnitude = (rest << 13) + (112u << 23);
  if (rest < 0x400u) magnitude = std::bit_cast<std::uint32_t>(static_cast<float>(rest) * least);
  if (rest >= 0x7c00u) magnitude = 0x7f800000u | rest << 13;
  return std::bit_cast<float>(sign | magnitude);
}

inline f16 to_f16(float x) {
  const auto u = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = u >> 16 & 0x8000u, rest = u & 0x7fffffffu;
  std::uint32_t magnitude = (rest - (112u << 23) + 0xfffu + (rest >> 13 & 1u)) >> 13;
  if (rest < 0x38800000u) {  // below 2^-14: the addition rounds, for 0.5 has subnormal f16's spacing
    magnitude = std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest) + 0.5f) - std::bit_cast<std::uint32_t>(0.5f);
  }
  if (rest >= 0x477ff000u) magnitude = 0x7c00u;  // 65520
  if (rest > 0x7f800000u) magnitude = 0x7e00u | (rest >> 13 & 0x3ffu);
  return {static_cast<std::uint16_t>(sign | magnitude)};
}

}  // namespace harness
