#pragma once

#include <array>
#include <chrono>
#include <ctime>
#include <string>

namespace harness {

/// A source of time: this machine's clocks, unless a subclass overrides them.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Seconds since an arbitrary origin; monotonic.
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

/// On the steady clock.
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
