#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace harness {

/// Philox-4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11): a counter-based generator.
/// The i-th number of a stream depends on (key, i) alone, so a shard of a tensor draws exactly the numbers that the
/// whole tensor would have there, on any device and in any order.
inline std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t counter, std::uint64_t stream = 0) {
  std::array<std::uint32_t, 4> x{static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32),
                                 static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)};
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * x[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * x[2];
    x = {static_cast<std::uint32_t>(p1 >> 32) ^ x[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ x[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return x;
}

/// Uniform in (0, 1): the 24 highest bits, never 0 or 1.
inline double uniform_open(std::uint32_t bits) {
  return (static_cast<double>(bits >> 8) + 0.5) / 16777216.0;
}

/// Returns the standard normal number at `index` of (key, stream), by Box-Muller on one counter per number.
inline double philox_normal(std::uint64_t key, std::uint64_t index, std::uint64_t stream = 0) {
  const auto x = philox(key, index, stream);
  return std::sqrt(-2.0 * std::log(uniform_open(x[0]))) * std::cos(2.0 * std::numbers::pi * uniform_open(x[1]));
}

}  // namespace harness
