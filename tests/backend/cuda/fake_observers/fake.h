#pragma once

#include <cstdint>

// A library that goes by the name of the toolkit's and does what a test tells it: dlopen finds it since it is loaded
// already. It shows that ours calls and reads it rightly, not what a GPU would do.

extern "C" {
/// CUPTI: launches are made by fake_launch and come back as records, in one buffer, when flushed.
struct FakeCupti {
  int fail_enable_kind = -1;  // CUpti_ActivityKind that cannot be enabled
  int enabled = 0;            // kinds enabled now
  std::uint32_t version = 130001;
  std::uint64_t dropped = 0;
  bool late = false;                 // an event has not completed: flush(0) hands over no buffer, a forced one does
  bool silent = false;               // no flush hands over anything, forced or not
  bool (*synchronized)() = nullptr;  // while it says no, launches have not ended: late, and records without times
  bool kernel_per_push = false;      // every id that is pushed launches a kernel
};
FakeCupti* fake_cupti();
/// kind: 0 kernel, 1 memcpy, 2 memcpy between GPUs, 3 memset.
void fake_launch(int kind, std::uint64_t start_ns, std::uint64_t end_ns);
}
