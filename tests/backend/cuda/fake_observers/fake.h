#pragma once

#include <atomic>
#include <cstdint>

// Libraries that go by the names of the driver's and the toolkit's and do what a test tells them: dlopen finds them
// since they are loaded already. They show that ours calls and reads them rightly, not what a GPU would do.

extern "C" {
/// NVML: one GPU at 0000:18:00.0, whose readings change with every sample.
struct FakeNvml {
  bool answers = true;                  // false: all readings fail
  std::atomic<int> samples = 0;         // utilisation read
  std::atomic<bool> hangs = false;      // readings of the power wait until this is false
  unsigned long long energy_mj = 1000;  // grows by 500 with each reading
};
FakeNvml* fake_nvml();

/// CUPTI: launches are made by fake_launch and come back as records, in one buffer, when flushed.
struct FakeCupti {
  int fail_enable_kind = -1;  // CUpti_ActivityKind that cannot be enabled
  int enabled = 0;            // kinds enabled now
  std::uint64_t dropped = 0;
  bool late = false;                 // an event has not completed: flush(0) hands over no buffer, a forced one does
  bool silent = false;               // no flush hands over anything, forced or not
  bool (*synchronized)() = nullptr;  // while it says no, launches have not ended: late, and records without times
  bool kernel_per_push = false;      // every id that is pushed launches a kernel
};
FakeCupti* fake_cupti();
/// kind: 0 kernel, 1 memcpy, 2 memcpy between GPUs, 3 memset.
void fake_launch(int kind, const char* name, std::uint32_t stream, std::uint64_t graph_node, std::uint64_t start_ns,
                 std::uint64_t end_ns);
}
