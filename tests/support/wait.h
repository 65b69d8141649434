#pragma once

#include <chrono>
#include <thread>

namespace harness::test {

/// Waits until `condition()` holds; returns false after `longest_s`, which only a defect should reach.
template <class Condition>
bool wait_until(const Condition& condition, double longest_s = 120) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(longest_s);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace harness::test
