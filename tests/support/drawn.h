#pragma once

#include <cstdint>
#include <string_view>

#include "base/text.h"
#include "support/soak.h"

namespace harness::test {

/// Whether a test takes this cell of a grid: one of `of` cells, the same in every run, and with HARNESS_SOAK all; where
/// sanitizers watch, one of ten times as many. Which one depends on its text alone: cells that join the grid change
/// nothing for the others.
inline bool drawn(std::string_view cell, std::uint64_t of) {
  if (soaking()) return true;
  // The lowest bits of FNV-1a are those of the last letters.
  return (fnv1a(cell) >> 20) % (sanitized ? 10 * of : of) == 0;
}

}  // namespace harness::test
