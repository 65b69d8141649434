// The runtime's calls on streams, and the launch of an emulated kernel.
#include <fmt/format.h>

#include <algorithm>

#include "capture.h"
#include "stream.h"

namespace harness::fake {
namespace {

cudaError_t create_stream(cudaStream_t* handle, unsigned flags, int priority, const char* call) {
  if (const cudaError_t error = device_error(); error != cudaSuccess) return failed(error);
  if (handle == nullptr) return failed(cudaErrorInvalidValue, fmt::format("{}: no place for the handle", call));
  if ((flags & ~unsigned{cudaStreamNonBlocking}) != 0) {
    return failed(cudaErrorInvalidValue, fmt::format("{}: unknown flags {}", call, flags));
  }
  auto stream = Stream::create(current_device(), (flags & cudaStreamNonBlocking) == 0, priority);
  *handle = add_stream(std::move(stream));
  return cudaSuccess;
}

// Waiting for, or asking after, a stream: what they have in common. Null: `error` says why not.
std::shared_ptr<Stream> waitable(cudaStream_t handle, const char* call, cudaError_t& error) {
  if ((error = device_error()) != cudaSuccess) return nullptr;
  auto stream = find_stream(handle, call);
  error = cudaErrorInvalidResourceHandle;
  if (!stream) return nullptr;
  const std::lock_guard lock(runtime_mutex());
  if (stream->capture) {
    stream->capture->invalidate(fmt::format("{} of a stream that is being captured", call));
    error = cudaErrorStreamCaptureUnsupported;
    return nullptr;
  }
  error = refuse_in_capture(call);
  return error == cudaSuccess ? stream : nullptr;
}

}  // namespace
}  // namespace harness::fake

using namespace harness::fake;

cudaError_t cudaStreamCreate(cudaStream_t* handle) {
  return create_stream(handle, 0, 0, "cudaStreamCreate");
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* handle, unsigned flags) {
  return create_stream(handle, flags, 0, "cudaStreamCreateWithFlags");
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* handle, unsigned flags, int priority) {
  return create_stream(handle, flags, std::min(0, std::max(-5, priority)), "cudaStreamCreateWithPriority");
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return device_error();
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  const auto stream = find_stream(handle, "cudaStreamGetPriority");
  if (!stream) return failed(cudaErrorInvalidResourceHandle);
  *priority = stream->priority;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  const auto stream = remove_stream(handle);
  if (!stream) {
    return failed(cudaErrorInvalidResourceHandle,
                  fmt::format("cudaStreamDestroy: {} is not a live stream", fmt::ptr(handle)));
  }
  const std::lock_guard lock(runtime_mutex());
  if (stream->capture) stream->capture->invalidate("a stream was destroyed in the middle of its capture");
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  cudaError_t error = cudaSuccess;
  const auto stream = waitable(handle, "cudaStreamSynchronize", error);
  if (!stream) return failed(error);
  stream->now().wait();
  return failed(device_error());
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  cudaError_t error = cudaSuccess;
  const auto stream = waitable(handle, "cudaStreamQuery", error);
  if (!stream) return failed(error);
  if (!stream->idle()) return failed(cudaErrorNotReady);
  return failed(device_error());
}

cudaError_t cudaDeviceSynchronize() {
  if (const cudaError_t error = device_error(); error != cudaSuccess) return failed(error);
  const int device = current_device();
  {
    const std::lock_guard lock(runtime_mutex());
    bool capturing = false;
    for (const auto& stream : streams_of(device)) {
      if (!stream->capture) continue;
      stream->capture->invalidate("cudaDeviceSynchronize while a stream of the device is being captured");
      capturing = true;
    }
    if (capturing) return failed(cudaErrorStreamCaptureUnsupported);
    if (const cudaError_t error = refuse_in_capture("cudaDeviceSynchronize"); error != cudaSuccess) {
      return failed(error);
    }
  }
  wait_for_device(device);
  note_synchronized();
  return failed(device_error());
}

namespace harness::emulation {

void submit(Stream handle, std::function<void()> kernel) {
  if (const cudaError_t error = fake::device_error(); error != cudaSuccess) {
    fake::failed(error);
    return;
  }
  const auto stream = fake::find_stream(handle, "kernel launch");
  if (!stream) {
    fake::failed(cudaErrorInvalidResourceHandle);
  } else if (stream->device != fake::current_device()) {
    fake::failed(cudaErrorInvalidResourceHandle,
                 fmt::format("kernel launch: the stream is of device {}, the current one is {}", stream->device,
                             fake::current_device()));
  } else {
    fake::give(stream, "kernel", std::move(kernel));
  }
}

}  // namespace harness::emulation
