#pragma once

#include <atomic>

// A library under the name of the driver's that does what a test tells it. dlopen finds it because it is already
// loaded. It tests the calls of our code and how it reads the answers, not the driver's behaviour.

extern "C" {
/// NVML: one GPU at 0000:18:00.0, whose readings change with every sample.
struct FakeNvml {
  bool answers = true;                  // false: all readings fail
  std::atomic<int> samples = 0;         // utilisation read
  std::atomic<bool> hangs = false;      // readings of the power wait until this is false
  unsigned long long energy_mj = 1000;  // grows by 500 with each reading
};
FakeNvml* fake_nvml();
}
