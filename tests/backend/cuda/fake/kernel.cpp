// Launches of kernels that a test declares. The backend's own run through the emulation and never come here.
#include <fmt/format.h>

#include <atomic>
#include <map>

#include "capture.h"
#include "core.h"
#include "runtime.h"
#include "stream.h"

namespace harness::fake {
namespace {

constexpr std::int64_t granted = 48 << 10, at_most = 232448;  // bytes of shared memory: unasked, and for who asks

struct Kernel {
  std::int64_t declared = 0;  // bytes of shared memory
  std::int64_t dynamic = 0;   // allowed to a launch
  int code = 90;
};

std::atomic<int>& programmatic() {
  static auto& count = *new std::atomic<int>(0);
  return count;
}

std::map<const void*, Kernel>& kernels() {
  static auto& all = *new std::map<const void*, Kernel>;
  return all;
}

const bool known = take_part({2,
                              [] {
                                const std::lock_guard lock(runtime_mutex());
                                kernels().clear();
                                programmatic() = 0;
                              },
                              nullptr});

}  // namespace

void declare_kernel(const void* function, std::int64_t shared_bytes, int code) {
  const std::lock_guard lock(runtime_mutex());
  kernels()[function] = {shared_bytes, granted - shared_bytes, code};
}

int programmatic_launches() {
  return programmatic();
}

// The attribute is for compute capability 9.0 and later. In a capture it becomes the type of the edge to what is ahead,
// which only edges between kernels may have (cudaGraphDependencyTypeProgrammatic in driver_types.h). What becomes of
// one beside other edges is written nowhere: refused.
cudaError_t check_programmatic(const std::shared_ptr<Stream>& stream) {
  if (settings().capability_major < 9) {
    return failed(cudaErrorNotSupported, "a programmatic launch on a device that has none");
  }
  const std::lock_guard lock(runtime_mutex());
  if (stream->capture && !stream->capture->invalid) {
    const bool one = stream->tips.size() == 1;
    if (!one || stream->capture->graph->nodes[stream->tips[0]].operation.type != cudaGraphNodeTypeKernel) {
      return failed(cudaErrorInvalidValue,
                    fmt::format("a programmatic launch behind {}, not one kernel",
                                one ? std::string("a copy") : fmt::format("{} nodes", stream->tips.size())));
    }
  }
  ++programmatic();
  return cudaSuccess;
}

}  // namespace harness::fake

using namespace harness::fake;

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  const std::lock_guard lock(runtime_mutex());
  const auto found = kernels().find(function);
  if (found == kernels().end()) return failed(cudaErrorInvalidDeviceFunction, "cudaFuncGetAttributes: no kernel");
  *attributes = {};
  attributes->ptxVersion = attributes->binaryVersion = found->second.code;
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

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void**) {
  if (const cudaError_t error = device_error(); error != cudaSuccess) return failed(error);
  if (config == nullptr) return failed(cudaErrorInvalidValue, "cudaLaunchKernelExC: no configuration");
  if ((config->numAttrs > 0) != (config->attrs != nullptr)) {
    return failed(cudaErrorInvalidValue, "cudaLaunchKernelExC: attributes and their number do not fit");
  }
  const std::lock_guard lock(runtime_mutex());
  const auto found = kernels().find(function);
  if (found == kernels().end()) return failed(cudaErrorInvalidDeviceFunction, "cudaLaunchKernelExC: no kernel");
  if (static_cast<std::int64_t>(config->dynamicSmemBytes) > found->second.dynamic) {
    return failed(cudaErrorInvalidValue,
                  fmt::format("cudaLaunchKernelExC: {} bytes of shared memory and {} declared, without having asked",
                              config->dynamicSmemBytes, found->second.declared));
  }
  const auto stream = find_stream(config->stream, "cudaLaunchKernelExC");
  if (!stream) return failed(cudaErrorInvalidResourceHandle);
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttribute& attribute = config->attrs[i];
    if (attribute.id != cudaLaunchAttributeProgrammaticStreamSerialization) {
      return failed(cudaErrorInvalidValue, fmt::format("cudaLaunchKernelExC: attribute {} is not known here; add it",
                                                       static_cast<int>(attribute.id)));
    }
    const int allowed = attribute.val.programmaticStreamSerializationAllowed;
    if (allowed != 0 && allowed != 1) {
      return failed(cudaErrorInvalidValue, "cudaLaunchKernelExC: programmatic serialization is neither 0 nor 1");
    }
    if (allowed == 0) continue;
    if (const cudaError_t error = check_programmatic(stream); error != cudaSuccess) return error;
  }
  return give(stream, "kernel", [] {});
}
