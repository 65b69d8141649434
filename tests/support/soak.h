#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/text.h"

namespace harness::test {

/// Whether this build has the address sanitizer, which makes it three to ten times as slow.
#ifdef __SANITIZE_ADDRESS__
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

/// Whether tests repeat as often as in `make soak`.
inline bool soaking() {
  return std::getenv("HARNESS_SOAK") != nullptr;
}

/// Returns how many random draws a test makes: `soak` in `make soak`, else `usual`, or a tenth of that with sanitizers,
/// which look for bad addresses rather than rare events.
inline int draws(int usual, int soak) {
  if (soaking()) return soak;
  return sanitized ? usual / 10 : usual;
}

/// Returns how often a test repeats slow work: `soak` in `make soak`, else `usual`, or `with_sanitizers`.
inline int times(int usual, int with_sanitizers, int soak) {
  if (soaking()) return soak;
  return sanitized ? with_sanitizers : usual;
}

/// Whether a test runs this cell of a grid: one of `of` cells, the same in every run; all cells with HARNESS_SOAK, one
/// of 10 * `of` with sanitizers. The choice depends on the cell's text alone, so that new cells do not change it for
/// others.
inline bool drawn(std::string_view cell, std::uint64_t of) {
  if (soaking()) return true;
  // The lowest bits of FNV-1a depend mostly on the last letters.
  return (fnv1a(cell) >> 20) % (sanitized ? 10 * of : of) == 0;
}

}  // namespace harness::test
