#pragma once

#include <array>
#include <chrono>
#include <ctime>
#include <string>

namespace harness {

/// The time by which something runs: this machine's, or that of a clock which overrides both.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Since some moment; never goes back.
  virtual double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  virtual double unix_s() const {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  }
};
inline const Clock& system_clock() {
  static const Clock clock;
  return clock;
}

/// By the clock that never jumps.
inline double seconds_since(std::chrono::steady_clock::time_point then) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count();
}

/// "2026-11-23T20:03:48Z"
inline std::string utc_text(double unix_s = system_clock().unix_s()) {
  const auto seconds = static_cast<std::time_t>(unix_s);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text.data();
}

}  // namespace harness
