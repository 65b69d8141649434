#pragma once

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

}  // namespace harness
