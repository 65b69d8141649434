// The runtime's errors, devices, versions and names.
#include "runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "stream.h"

namespace harness::fake {
namespace {

thread_local cudaError_t last_error = cudaSuccess;
thread_local int device = 0;

std::map<int, cudaError_t>& broken() {
  static auto& devices = *new std::map<int, cudaError_t>;
  return devices;
}

// The devices that got work since their last cudaDeviceSynchronize.
std::set<int>& given() {
  static auto& devices = *new std::set<int>;
  return devices;
}

constexpr int multiprocessors = 132;  // of an H200

cudaError_t check_device(int device, const char* call) {
  if (device >= 0 && device < settings().device_count) return cudaSuccess;
  return failed(cudaErrorInvalidDevice,
                fmt::format("{}: there is no device {} of {}", call, device, settings().device_count));
}

const bool known = take_part({2,
                              [] {
                                const std::lock_guard lock(runtime_mutex());
                                broken().clear();
                                given().clear();
                                last_error = cudaSuccess;
                                device = 0;
                              },
                              nullptr});

}  // namespace

std::recursive_mutex& runtime_mutex() {
  static auto& mutex = *new std::recursive_mutex;
  return mutex;
}

cudaError_t failed(cudaError_t error, const std::string& why) {
  if (error == cudaSuccess) return error;
  last_error = error;
  if (!why.empty()) complain(fmt::format("{} ({})", why, cudaGetErrorName(error)));
  return error;
}

int current_device() {
  return device;
}

void break_device(int which, cudaError_t error, const std::string& why) {
  complain(fmt::format("device {}: {} ({})", which, why, cudaGetErrorName(error)));
  const std::lock_guard lock(runtime_mutex());
  broken().emplace(which, error);
}

cudaError_t device_error() {
  const std::lock_guard lock(runtime_mutex());
  const auto found = broken().find(device);
  return found == broken().end() ? cudaSuccess : found->second;
}

cudaError_t give(const std::shared_ptr<Stream>& stream, Operation operation) {
  const std::lock_guard lock(runtime_mutex());
  if (stream->capture) {
    if (stream->capture->invalid) {
      return failed(cudaErrorStreamCaptureInvalidated, fmt::format("{} in a spoilt capture", operation.name));
    }
    stream->capture->add(stream, {std::move(operation), {}});
    return cudaSuccess;
  }
  stream->enqueue(operation.issue());
  given().insert(stream->device);
  return cudaSuccess;
}

cudaError_t give(const std::shared_ptr<Stream>& stream, const char* name, Work work) {
  return give(stream, Operation{name, [work = std::move(work)] { return work; }});
}

void note_synchronized() {
  const std::lock_guard lock(runtime_mutex());
  given().erase(device);
}

bool synchronized(int which) {
  const std::lock_guard lock(runtime_mutex());
  return !given().contains(which);
}

}  // namespace harness::fake

using namespace harness::fake;

cudaError_t cudaGetLastError() {
  const cudaError_t error = device_error() != cudaSuccess ? device_error() : last_error;
  last_error = cudaSuccess;
  return error;
}

cudaError_t cudaGetDevice(int* which) {
  *which = device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int which) {
  if (const cudaError_t error = check_device(which, "cudaSetDevice"); error != cudaSuccess) return error;
  device = which;
  return device_error();
}

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
  std::snprintf(text, length, "0000:%02x:00.0", 0x1bU + static_cast<unsigned>(device));
  return cudaSuccess;
}

const char* cudaGetErrorName(cudaError_t error) {
#define HARNESS_FAKE_ERROR(error) \
  { error, #error }
  static constexpr std::pair<cudaError_t, const char*> names[] = {HARNESS_FAKE_ERROR(cudaSuccess),
                                                                  HARNESS_FAKE_ERROR(cudaErrorInvalidValue),
                                                                  HARNESS_FAKE_ERROR(cudaErrorMemoryAllocation),
                                                                  HARNESS_FAKE_ERROR(cudaErrorNoDevice),
                                                                  HARNESS_FAKE_ERROR(cudaErrorInvalidDevice),
                                                                  HARNESS_FAKE_ERROR(cudaErrorInvalidResourceHandle),
                                                                  HARNESS_FAKE_ERROR(cudaErrorNotReady),
                                                                  HARNESS_FAKE_ERROR(cudaErrorIllegalAddress),
                                                                  HARNESS_FAKE_ERROR(cudaErrorLaunchFailure),
                                                                  HARNESS_FAKE_ERROR(cudaErrorStreamCaptureUnsupported),
                                                                  HARNESS_FAKE_ERROR(cudaErrorStreamCaptureInvalidated),
                                                                  HARNESS_FAKE_ERROR(cudaErrorStreamCaptureUnjoined),
                                                                  HARNESS_FAKE_ERROR(cudaErrorStreamCaptureIsolation),
                                                                  HARNESS_FAKE_ERROR(cudaErrorCapturedEvent)};
#undef HARNESS_FAKE_ERROR
  const auto* found = std::ranges::find(names, error, &std::pair<cudaError_t, const char*>::first);
  return found == std::end(names) ? "unrecognized error code" : found->second;
}

const char* cudaGetErrorString(cudaError_t error) {
  return cudaGetErrorName(error);
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
