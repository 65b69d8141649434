#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/text.h"

namespace harness::test {

/// Whether the address sanitizer watches this build: it takes three to ten times as long.
#ifdef __SANITIZE_ADDRESS__
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

/// Whether tests shall repeat as often as `make soak` asks.
inline bool soaking() {
  return std::getenv("HARNESS_SOAK") != nullptr;
}

/// How often a test draws what chance decides: as often as `make soak` asks, or `usual`; where sanitizers watch, a
/// tenth of that. There it is about addresses, and about odds at -O2.
inline int draws(int usual, int soak) {
  if (soaking()) return soak;
  return sanitized ? usual / 10 : usual;
}

/// How often a test does what takes long: as often as `make soak` asks, `usual`, or fewer where sanitizers watch.
inline int times(int usual, int with_sanitizers, int soak) {
  if (soaking()) return soak;
  return sanitized ? with_sanitizers : usual;
}

/// Whether a test takes this cell of a grid: one of `of` cells, the same in every run, and with HARNESS_SOAK all; where
/// sanitizers watch, one of ten times as many. Which one depends on its text alone: cells that join the grid change
/// nothing for the others.
inline bool drawn(std::string_view cell, std::uint64_t of) {
  if (soaking()) return true;
  // The lowest bits of FNV-1a are those of the last letters.
  return (fnv1a(cell) >> 20) % (sanitized ? 10 * of : of) == 0;
}

}  // namespace harness::test
