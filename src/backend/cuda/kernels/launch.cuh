#pragma once

#include <tuple>

#include "backend/cuda/kernels/launch.h"
#include "backend/cuda/kernels/platform.cuh"

#ifdef HARNESS_EMULATED_CUDA
#include "backend/cuda/emulation/emulation.h"
#endif

namespace harness::cuda {

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// Threads for n pieces of work per block: whole warps, at most `limit`.
inline int threads_for(std::int64_t n, int limit) {
  const std::int64_t warps = ceil_div(n < 1 ? 1 : n, 32);
  return warps * 32 < limit ? static_cast<int>(warps * 32) : limit;
}

// launch(): the one way a kernel is started. The arguments are converted to the parameters' types. No blocks: nothing
// to do.
#ifdef HARNESS_EMULATED_CUDA

inline DeviceLimits device_limits() {
  return {emulation::multiprocessors, emulation::shared_limit_bytes};
}

template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), const Grid& grid, Stream stream, Arguments... arguments) {
  if (grid.blocks == 0) return;
  const auto work = [=] {
    emulation::run({name, grid.blocks, grid.threads, grid.shared_bytes},
                   [&] { kernel(static_cast<Parameters>(arguments)...); });
  };
  emulation::submit(stream, work);
}

#else

template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), const Grid& grid, Stream stream, Arguments... arguments) {
  if (grid.blocks == 0) return;
  std::tuple<Parameters...> values{static_cast<Parameters>(arguments)...};
  std::apply(
      [&](auto&... value) {
        void* addresses[] = {&value...};
        launch_kernel(name, reinterpret_cast<const void*>(kernel), grid, stream, addresses);
      },
      values);
}

#endif

}  // namespace harness::cuda
