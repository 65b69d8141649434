#pragma once

#include <time.h>

#include <algorithm>

namespace harness::mpi {

/// Sleeps between two polls: briefly at first, so that an event that is about to happen is seen at once, then longer
/// and longer. A signal ends a sleep.
class Waiter {
 public:
  explicit Waiter(double max_s) : max_s_(max_s) {}
  void sleep() {
    const timespec time{0, static_cast<long>(next_s_ * 1e9)};
    ::nanosleep(&time, nullptr);
    next_s_ = std::min(max_s_, next_s_ * 1.5);
  }
  void reset() { next_s_ = min_s; }

 private:
  static constexpr double min_s = 50e-6;
  double max_s_;
  double next_s_ = min_s;
};

}  // namespace harness::mpi
