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

/// The bits of the bf16 nearest to the float with these bits. For code that also runs on a device.
constexpr std::uint16_t nearest_bf16_bits(std::uint32_t u) {
  if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((u >> 16) | 0x40u);
  return static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
inline bf16 to_bf16(float x) {
  return {nearest_bf16_bits(std::bit_cast<std::uint32_t>(x))};
}

}  // namespace harness
