// The runtime's calls on devices, versions and names.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "core.h"
#include "runtime.h"

namespace harness::fake {
namespace {

constexpr int multiprocessors = 132;  // of an H200

cudaError_t check_device(int device, const char* call) {
  if (device >= 0 && device < settings().device_count) return cudaSuccess;
  return failed(cudaErrorInvalidDevice,
                fmt::format("{}: there is no device {} of {}", call, device, settings().device_count));
}

int pci_bus(int device) {
  return 0x1b + device;
}

struct ErrorName {
  cudaError_t error;
  const char* name;
  const char* text;
};
#define HARNESS_FAKE_ERROR(error, text) \
  { error, #error, text }
constexpr ErrorName error_names[] = {
    HARNESS_FAKE_ERROR(cudaSuccess, "no error"),
    HARNESS_FAKE_ERROR(cudaErrorInvalidValue, "invalid argument"),
    HARNESS_FAKE_ERROR(cudaErrorMemoryAllocation, "out of memory"),
    HARNESS_FAKE_ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    HARNESS_FAKE_ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    HARNESS_FAKE_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    HARNESS_FAKE_ERROR(cudaErrorNotReady, "device not ready"),
    HARNESS_FAKE_ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    HARNESS_FAKE_ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    HARNESS_FAKE_ERROR(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    HARNESS_FAKE_ERROR(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"),
    HARNESS_FAKE_ERROR(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    HARNESS_FAKE_ERROR(cudaErrorStreamCaptureIsolation, "dependency on uncaptured work in another stream"),
    HARNESS_FAKE_ERROR(cudaErrorCapturedEvent, "operation not permitted on an event last recorded in a capture"),
};
#undef HARNESS_FAKE_ERROR

const ErrorName* name_of(cudaError_t error) {
  const auto* found = std::find_if(std::begin(error_names), std::end(error_names),
                                   [&](const ErrorName& name) { return name.error == error; });
  return found == std::end(error_names) ? nullptr : found;
}

}  // namespace
}  // namespace harness::fake

using namespace harness::fake;

cudaError_t cudaGetDeviceCount(int* count) {
  *count = settings().device_count;
  return failed(settings().device_count > 0 ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (const cudaError_t error = check_device(device, "cudaGetDeviceProperties"); error != cudaSuccess) return error;
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "NVIDIA Fake");
  properties->totalGlobalMem = settings().device_bytes;
  properties->major = settings().compute_major;
  properties->multiProcessorCount = multiprocessors;
  properties->l2CacheSize = 50 << 20;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (const cudaError_t error = check_device(device, "cudaDeviceGetAttribute"); error != cudaSuccess) return error;
  switch (attribute) {
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = 232448;
      return cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
      *value = multiprocessors;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = settings().compute_major;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = 0;
      return cudaSuccess;
    default:
      return failed(cudaErrorInvalidValue, fmt::format("cudaDeviceGetAttribute: attribute {} is not known here; add it",
                                                       static_cast<int>(attribute)));
  }
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  if (const cudaError_t error = check_device(device, "cudaDeviceGetPCIBusId"); error != cudaSuccess) return error;
  std::snprintf(text, length, "0000:%02x:00.0", static_cast<unsigned>(pci_bus(device)));
  return cudaSuccess;
}

const char* cudaGetErrorName(cudaError_t error) {
  const ErrorName* name = name_of(error);
  return name == nullptr ? "unrecognized error code" : name->name;
}

const char* cudaGetErrorString(cudaError_t error) {
  const ErrorName* name = name_of(error);
  return name == nullptr ? "unrecognized error code" : name->text;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
