#include "runtime.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "capture.h"
#include "stream.h"

namespace harness::fake {
namespace {

thread_local cudaError_t last_error = cudaSuccess;
thread_local int device = 0;

std::map<int, cudaError_t>& broken() {
  static auto& devices = *new std::map<int, cudaError_t>;
  return devices;
}

// Given work since the last cudaDeviceSynchronize.
std::set<int>& given() {
  static auto& devices = *new std::set<int>;
  return devices;
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
  if (which < 0 || which >= settings().device_count) {
    return failed(cudaErrorInvalidDevice,
                  fmt::format("cudaSetDevice: there is no device {} of {}", which, settings().device_count));
  }
  device = which;
  return device_error();
}
