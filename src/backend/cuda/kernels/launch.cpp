// The CUDA calls of launch.cuh, in a separate file for the host compiler, because nvcc 13.0 fails on fmt's compile-time
// check of format strings.
#include "backend/cuda/kernels/kernels.h"

#include <cuda_runtime.h>

#include "base/text.h"

namespace harness::cuda {
namespace {

constexpr std::int64_t max_blocks = 0x7fffffff;
// Per block without opt-in: dynamic and declared shared memory together.
constexpr std::int64_t shared_bytes_granted_unasked = 48 * 1024;

cudaError_t ask_for_shared_memory(const void* kernel, std::int64_t bytes) {
  if (bytes == 0) return cudaSuccess;
  cudaFuncAttributes attributes{};
  const cudaError_t error = cudaFuncGetAttributes(&attributes, kernel);
  const auto declared = static_cast<std::int64_t>(attributes.sharedSizeBytes);
  if (error != cudaSuccess || declared + bytes <= shared_bytes_granted_unasked) return error;
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
}

}  // namespace

DeviceLimits device_limits() {
  int device = 0, multiprocessors = 0, shared = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  }
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  }
  if (error != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    fail("the CUDA device cannot be asked for its size: {} ({})", cudaGetErrorString(error), cudaGetErrorName(error));
  }
  return {multiprocessors, shared};
}

void launch_kernel(const char* name, const void* kernel, const Grid& grid, Stream stream, void** arguments) {
  if (grid.blocks > max_blocks) {
    fail("the CUDA kernel {} would need {} blocks; a device starts at most {} at once", name, grid.blocks, max_blocks);
  }
  cudaError_t error = ask_for_shared_memory(kernel, grid.shared_bytes);
  if (error == cudaSuccess) {
    error =
        cudaLaunchKernel(kernel, dim3(static_cast<unsigned>(grid.blocks)), dim3(static_cast<unsigned>(grid.threads)),
                         arguments, static_cast<std::size_t>(grid.shared_bytes), stream);
  }
  if (error == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // reported here; the next call must not report it again
  fail("the CUDA kernel {} could not be started: {} ({}); {} blocks of {} threads, {} bytes of shared memory asked for",
       name, cudaGetErrorString(error), cudaGetErrorName(error), grid.blocks, grid.threads, grid.shared_bytes);
}

}  // namespace harness::cuda
