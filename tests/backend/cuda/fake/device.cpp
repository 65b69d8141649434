// The runtime's calls on devices, versions and names.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "core.h"
#include "runtime.h"

namespace harness::fake {
namespace {

constexpr int capability_major = 9;

// What a program may ask of a device: those of an H200, whose public data sheet and CUDA's table of compute capability
// 9.0 say the same.
struct Attribute {
  cudaDeviceAttr attribute;
  int value;
};
constexpr Attribute attributes[] = {
    {cudaDevAttrMultiProcessorCount, 132},
    {cudaDevAttrComputeCapabilityMinor, 0},
    {cudaDevAttrL2CacheSize, 50 << 20},
    {cudaDevAttrClockRate, 1980000},
    {cudaDevAttrMemoryClockRate, 3201000},
    {cudaDevAttrGlobalMemoryBusWidth, 6144},
    {cudaDevAttrMaxThreadsPerBlock, 1024},
    {cudaDevAttrMaxThreadsPerMultiProcessor, 2048},
    {cudaDevAttrMaxSharedMemoryPerBlock, 49152},
    {cudaDevAttrMaxSharedMemoryPerBlockOptin, 232448},
    {cudaDevAttrMaxSharedMemoryPerMultiprocessor, 233472},
    {cudaDevAttrMaxRegistersPerBlock, 65536},
    {cudaDevAttrMaxBlocksPerMultiprocessor, 32},
    {cudaDevAttrWarpSize, 32},
    {cudaDevAttrMaxGridDimX, 2147483647},
    {cudaDevAttrMaxGridDimY, 65535},
    {cudaDevAttrMaxGridDimZ, 65535},
    {cudaDevAttrStreamPrioritiesSupported, 1},
    {cudaDevAttrConcurrentKernels, 1},
    {cudaDevAttrAsyncEngineCount, 3},
    {cudaDevAttrUnifiedAddressing, 1},
    {cudaDevAttrEccEnabled, 1},
    {cudaDevAttrIntegrated, 0},
    {cudaDevAttrCooperativeLaunch, 1},
    {cudaDevAttrMemoryPoolsSupported, 1},
    {cudaDevAttrPciDomainId, 0},
    {cudaDevAttrPciDeviceId, 0},
};

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
    HARNESS_FAKE_ERROR(cudaErrorIllegalState, "the operation cannot be performed in the present state"),
    HARNESS_FAKE_ERROR(cudaErrorNotReady, "device not ready"),
    HARNESS_FAKE_ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    HARNESS_FAKE_ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    HARNESS_FAKE_ERROR(cudaErrorNotSupported, "operation not supported"),
    HARNESS_FAKE_ERROR(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    HARNESS_FAKE_ERROR(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"),
    HARNESS_FAKE_ERROR(cudaErrorStreamCaptureMerge, "operation would result in a merge of separate captures"),
    HARNESS_FAKE_ERROR(cudaErrorStreamCaptureUnmatched, "capture was not ended in the stream that began it"),
    HARNESS_FAKE_ERROR(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    HARNESS_FAKE_ERROR(cudaErrorStreamCaptureIsolation, "dependency on uncaptured work in another stream"),
    HARNESS_FAKE_ERROR(cudaErrorStreamCaptureImplicit, "implicit dependency of the legacy stream on a capture"),
    HARNESS_FAKE_ERROR(cudaErrorCapturedEvent, "operation not permitted on an event last recorded in a capture"),
    HARNESS_FAKE_ERROR(cudaErrorStreamCaptureWrongThread, "capture was ended by another thread than began it"),
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
  if (count == nullptr) return failed(cudaErrorInvalidValue);
  *count = settings().device_count;
  return failed(settings().device_count > 0 ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (const cudaError_t error = check_device(device, "cudaGetDeviceProperties"); error != cudaSuccess) return error;
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "NVIDIA Fake");
  properties->totalGlobalMem = settings().device_bytes;
  properties->major = capability_major;
  properties->minor = 0;
  properties->multiProcessorCount = 132;
  properties->l2CacheSize = 50 << 20;
  properties->sharedMemPerBlock = 49152;
  properties->sharedMemPerBlockOptin = 232448;
  properties->sharedMemPerMultiprocessor = 233472;
  properties->regsPerBlock = 65536;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->memoryBusWidth = 6144;
  properties->pciBusID = pci_bus(device);
  properties->unifiedAddressing = 1;
  properties->streamPrioritiesSupported = 1;
  properties->concurrentKernels = 1;
  properties->asyncEngineCount = 3;
  properties->ECCEnabled = 1;
  properties->uuid.bytes[0] = static_cast<char>(device + 1);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (value == nullptr) return failed(cudaErrorInvalidValue);
  if (const cudaError_t error = check_device(device, "cudaDeviceGetAttribute"); error != cudaSuccess) return error;
  if (attribute == cudaDevAttrPciBusId) {
    *value = pci_bus(device);
    return cudaSuccess;
  }
  if (attribute == cudaDevAttrComputeCapabilityMajor) {
    *value = capability_major;
    return cudaSuccess;
  }
  for (const Attribute& known : attributes) {
    if (known.attribute != attribute) continue;
    *value = known.value;
    return cudaSuccess;
  }
  return failed(cudaErrorInvalidValue, fmt::format("cudaDeviceGetAttribute: attribute {} is not known here; add it",
                                                   static_cast<int>(attribute)));
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  if (const cudaError_t error = check_device(device, "cudaDeviceGetPCIBusId"); error != cudaSuccess) return error;
  if (text == nullptr || length < 13) return failed(cudaErrorInvalidValue, "cudaDeviceGetPCIBusId: no room");
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
