#pragma once

#include <chrono>
#include <string>

namespace harness {

/// The time by which something runs: this machine's, or a virtual one.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Since some moment; never goes back.
  virtual double seconds() const = 0;
  virtual double unix_s() const = 0;
};
const Clock& system_clock();

/// By the clock that never jumps.
inline double seconds_since(std::chrono::steady_clock::time_point then) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count();
}

/// "2026-11-23T20:03:48Z"
std::string utc_text(double unix_s = system_clock().unix_s());

}  // namespace harness
