#pragma once

#include <time.h>

#include <algorithm>

namespace harness {

/// Sleeps between two looks: briefly at first, so that what is about to happen is seen at once, then longer and longer.
/// A signal ends a sleep.
class Waiter {
 public:
  explicit Waiter(double longest_s) : longest_s_(longest_s) {}
  void sleep() {
    const timespec time{0, static_cast<long>(next_s_ * 1e9)};
    ::nanosleep(&time, nullptr);
    next_s_ = std::min(longest_s_, next_s_ * 1.5);
  }
  void reset() { next_s_ = shortest_s; }

 private:
  static constexpr double shortest_s = 50e-6;
  double longest_s_;
  double next_s_ = shortest_s;
};

}  // namespace harness
