#pragma once

#include <chrono>

namespace harness {

/// Of the clock that never jumps.
inline double seconds_since(std::chrono::steady_clock::time_point then) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count();
}

}  // namespace harness
