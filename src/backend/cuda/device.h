#pragma once

#include <cstdint>
#include <string>

#include "backend/backend.h"

namespace harness::cuda {

struct Device {
  int ordinal = 0;  // among those this process sees
  std::string name;
  std::string bus_id;  // "0000:1B:00.0", in capitals as the runtime writes it
  int multiprocessors = 0, major = 0, minor = 0;
  std::int64_t memory_bytes = 0, l2_bytes = 0;
};

/// Which of `visible` GPUs is a rank's: the only one a launcher shows it, else the one of its number on the node; with
/// `share`, round and round. Throws Error when there are not enough.
int device_ordinal(int visible, int local_rank, int local_ranks, bool share);

/// Finds this rank's GPU, binds the calling thread and what it starts near it, and makes the GPU the calling thread's:
/// in this order, because the driver then starts threads of its own. Throws Error that says what is missing where there
/// is no driver or no GPU.
Device use_device(const backend::ExecutableRequest& request);

/// "13.0"; the driver's is "" without one.
std::string runtime_version();
std::string driver_version();

}  // namespace harness::cuda
