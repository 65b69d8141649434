#pragma once

#include <cstdint>

// A stand-in library that a test controls. It has the name of the toolkit's library and is loaded already, so dlopen
// finds it. It shows that the backend calls CUPTI and reads its records correctly, not how a GPU behaves.

extern "C" {
/// CUPTI: fake_launch makes launches, and a flush returns them as records, in one buffer.
struct FakeCupti {
  int fail_enable_kind = -1;  // CUpti_ActivityKind that cannot be enabled
  int enabled = 0;            // number of kinds enabled now
  std::uint32_t version = 130001;
  std::uint64_t dropped = 0;
  bool late = false;                 // an activity is incomplete: only a forced flush hands over the buffer
  bool silent = false;               // no flush hands over anything, forced or not
  bool (*synchronized)() = nullptr;  // while it returns false: as `late`, and records have no times
  bool kernel_per_push = false;      // each pushed id launches a kernel
};
FakeCupti* fake_cupti();
/// kind: 0 kernel, 1 memcpy, 2 memcpy between GPUs, 3 memset.
void fake_launch(int kind, std::uint64_t start_ns, std::uint64_t end_ns);
}
