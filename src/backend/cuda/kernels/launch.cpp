// The CUDA calls of launch.cuh, in a file of their own for the host's compiler: nvcc 13.0 stumbles over fmt's
// compile-time check of format strings.
#include "backend/cuda/kernels/launch.h"

#include <cuda_runtime.h>

#include "backend/cuda/kernels/programmatic.h"
#include "base/error.h"

namespace harness::cuda {
namespace {

constexpr std::int64_t max_blocks = 0x7fffffff;
// What a block has without asking: the launch's choice and what the kernel declares, together.
constexpr std::int64_t shared_bytes_granted_unasked = 48 * 1024;

cudaError_t ask_for_shared_memory(const void* kernel, std::int64_t bytes) {
  if (bytes == 0) return cudaSuccess;
  cudaFuncAttributes attributes{};
  const cudaError_t error = cudaFuncGetAttributes(&attributes, kernel);
  const auto declared = static_cast<std::int64_t>(attributes.sharedSizeBytes);
  if (error != cudaSuccess || declared + bytes <= shared_bytes_granted_unasked) return error;
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
}

// wait_for_work_ahead() is an instruction in code for 9.0 and later alone. A newer GPU may also be given older code,
// made fit by the driver, and this would not wait.
constexpr int first_code_that_waits = 90;

void must_wait(const char* name, const void* kernel) {
  cudaFuncAttributes attributes{};
  const cudaError_t error = cudaFuncGetAttributes(&attributes, kernel);
  if (error != cudaSuccess) static_cast<void>(cudaGetLastError());
  if (error == cudaSuccess && attributes.ptxVersion >= first_code_that_waits) return;
  fail(
      "the CUDA kernel {} cannot be launched programmatically: its code is for compute capability {}.{}, which has no "
      "such launches; build with 90 among CMAKE_CUDA_ARCHITECTURES, or set programmatic_launch to false",
      name, attributes.ptxVersion / 10, attributes.ptxVersion % 10);
}

cudaError_t start(const void* kernel, const Grid& grid, Stream stream, void** arguments) {
  cudaLaunchAttribute programmatic{};
  programmatic.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  programmatic.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(grid.blocks));
  config.blockDim = dim3(static_cast<unsigned>(grid.threads));
  config.dynamicSmemBytes = static_cast<std::size_t>(grid.shared_bytes);
  config.stream = stream;
  if (ProgrammaticLaunches::on()) {
    config.attrs = &programmatic;
    config.numAttrs = 1;
  }
  return cudaLaunchKernelExC(&config, kernel, arguments);
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
  if (ProgrammaticLaunches::on()) must_wait(name, kernel);
  cudaError_t error = ask_for_shared_memory(kernel, grid.shared_bytes);
  if (error == cudaSuccess) {
    error = start(kernel, grid, stream, arguments);
  }
  if (error == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // said here; the next call shall not find it again
  fail("the CUDA kernel {} could not be started: {} ({}); {} blocks of {} threads, {} bytes of shared memory asked for",
       name, cudaGetErrorString(error), cudaGetErrorName(error), grid.blocks, grid.threads, grid.shared_bytes);
}

}  // namespace harness::cuda
