#pragma once

#include <cstdint>

#include "backend/cuda/kernels/kernels.h"

namespace harness::cuda {

/// How many blocks of how many threads (a multiple of 32), with how much shared memory of the launch's own choice.
struct Grid {
  std::int64_t blocks;
  int threads;
  std::int64_t shared_bytes = 0;
};

struct DeviceLimits {
  int multiprocessors;
  std::int64_t shared_bytes;  // that a block may ask for
};

/// The limits of the calling thread's device.
DeviceLimits device_limits();

/// The untyped half of launch(): `arguments` holds the address of each parameter's value. Throws Error naming the
/// kernel if the driver refuses.
void launch_kernel(const char* name, const void* kernel, const Grid& grid, Stream stream, void** arguments);

}  // namespace harness::cuda
