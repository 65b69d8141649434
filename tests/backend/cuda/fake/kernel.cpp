// Launches of kernels that a test declares. The backend's own run through the emulation and never come here.
#include <fmt/format.h>

#include <map>

#include "core.h"
#include "runtime.h"
#include "stream.h"

namespace harness::fake {
namespace {

constexpr std::int64_t granted = 48 << 10, at_most = 232448;  // bytes of shared memory: unasked, and for who asks

struct Kernel {
  std::int64_t declared = 0;  // bytes of shared memory
  std::int64_t dynamic = 0;   // allowed to a launch
};

std::map<const void*, Kernel>& kernels() {
  static auto& all = *new std::map<const void*, Kernel>;
  return all;
}

const bool known = take_part({2,
                              [] {
                                const std::lock_guard lock(runtime_mutex());
                                kernels().clear();
                              },
                              nullptr});

}  // namespace

void declare_kernel(const void* function, std::int64_t shared_bytes) {
  const std::lock_guard lock(runtime_mutex());
  kernels()[function] = {shared_bytes, granted - shared_bytes};
}

}  // namespace harness::fake

using namespace harness::fake;

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  const std::lock_guard lock(runtime_mutex());
  const auto found = kernels().find(function);
  if (found == kernels().end()) return failed(cudaErrorInvalidDeviceFunction, "cudaFuncGetAttributes: no kernel");
  *attributes = {};
  attributes->sharedSizeBytes = static_cast<std::size_t>(found->second.declared);
  attributes->maxDynamicSharedSizeBytes = static_cast<int>(found->second.dynamic);
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  const std::lock_guard lock(runtime_mutex());
  const auto found = kernels().find(function);
  if (found == kernels().end()) return failed(cudaErrorInvalidDeviceFunction, "cudaFuncSetAttribute: no kernel");
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return failed(cudaErrorInvalidValue);
  if (value < 0 || value + found->second.declared > at_most) {
    return failed(cudaErrorInvalidValue,
                  fmt::format("cudaFuncSetAttribute: {} bytes beside {} declared", value, found->second.declared));
  }
  found->second.dynamic = value;
  return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void* function, dim3, dim3, void**, size_t shared_bytes, cudaStream_t handle) {
  if (const cudaError_t error = device_error(); error != cudaSuccess) return failed(error);
  const std::lock_guard lock(runtime_mutex());
  const auto found = kernels().find(function);
  if (found == kernels().end()) return failed(cudaErrorInvalidDeviceFunction, "cudaLaunchKernel: no kernel");
  if (static_cast<std::int64_t>(shared_bytes) > found->second.dynamic) {
    return failed(cudaErrorInvalidValue,
                  fmt::format("cudaLaunchKernel: {} bytes of shared memory and {} declared, without having asked",
                              shared_bytes, found->second.declared));
  }
  const auto stream = find_stream(handle, "cudaLaunchKernel");
  if (!stream) return failed(cudaErrorInvalidResourceHandle);
  return give(stream, "kernel", [] {});
}
