#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/text.h"

namespace harness::test {

/// Whether this build uses AddressSanitizer, which takes three to ten times as long.
#ifdef __SANITIZE_ADDRESS__
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

/// Whether tests repeat as often as under `make soak`.
inline bool soaking() {
  return std::getenv("HARNESS_SOAK") != nullptr;
}

/// Returns how often a test draws random input: `soak` under `make soak`, else `usual`; a tenth of that with
/// sanitizers. Sanitizer builds look for memory errors; the build at -O2 covers the odds.
inline int draws(int usual, int soak) {
  if (soaking()) return soak;
  return sanitized ? usual / 10 : usual;
}

/// Returns how often a test repeats a slow action: `soak` under `make soak`, else `usual`, or `with_sanitizers`.
inline int times(int usual, int with_sanitizers, int soak) {
  if (soaking()) return soak;
  return sanitized ? with_sanitizers : usual;
}

/// Whether a test takes this cell of a grid: one of `of` cells, the same in every run; all with HARNESS_SOAK; a tenth
/// as many with sanitizers. The choice depends only on the cell's text, so new cells do not change it for others.
inline bool drawn(std::string_view cell, std::uint64_t of) {
  if (soaking()) return true;
  // The lowest bits of FNV-1a depend mostly on the last letters.
  return (fnv1a(cell) >> 20) % (sanitized ? 10 * of : of) == 0;
}

}  // namespace harness::test
