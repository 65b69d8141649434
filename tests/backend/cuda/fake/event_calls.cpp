// The runtime's calls on events.
#include <fmt/format.h>

#include "capture.h"
#include "event.h"

namespace harness::fake {
namespace {

Registry<cudaEvent_t, Event>& events() {
  static auto& all = *new Registry<cudaEvent_t, Event>(0x55);
  static const bool known = take_part({2, [] { events().clear(); },
                                       [](std::vector<std::string>& into) {
                                         if (events().size() > 0) {
                                           into.push_back(fmt::format("{} events", events().size()));
                                         }
                                       }});
  (void)known;
  return all;
}

std::shared_ptr<Event> find_event(cudaEvent_t handle, const char* caller) {
  auto event = events().find(handle);
  if (!event) complain(fmt::format("{}: {} is not a live event", caller, fmt::ptr(handle)));
  return event;
}

// The record to ask about. Null with cudaSuccess: never recorded, so nothing to wait for.
std::shared_ptr<Record> latest(cudaEvent_t handle, const char* call, cudaError_t& error) {
  if ((error = device_error()) != cudaSuccess) return nullptr;
  const auto event = find_event(handle, call);
  error = cudaErrorInvalidResourceHandle;
  if (!event) return nullptr;
  const std::lock_guard lock(runtime_mutex());
  if (event->capture) {
    if (!event->capture->ended) event->capture->invalidate(fmt::format("{} of an event recorded in it", call));
    error = cudaErrorCapturedEvent;
    return nullptr;
  }
  error = refuse_in_capture(call);
  return error == cudaSuccess ? event->latest : nullptr;
}

}  // namespace
}  // namespace harness::fake

using namespace harness::fake;

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* handle, unsigned flags) {
  if (const cudaError_t error = device_error(); error != cudaSuccess) return failed(error);
  if (handle == nullptr || flags > 7 || ((flags & cudaEventInterprocess) && !(flags & cudaEventDisableTiming))) {
    return failed(cudaErrorInvalidValue, fmt::format("cudaEventCreateWithFlags: flags {}", flags));
  }
  auto event = std::make_shared<Event>();
  event->device = current_device();
  event->flags = flags;
  *handle = events().add(std::move(event));
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* handle) {
  return cudaEventCreateWithFlags(handle, 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  if (events().remove(handle)) return cudaSuccess;
  return failed(cudaErrorInvalidResourceHandle,
                fmt::format("cudaEventDestroy: {} is not a live event", fmt::ptr(handle)));
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t handle, cudaStream_t stream_handle, unsigned flags) {
  if (const cudaError_t error = device_error(); error != cudaSuccess) return failed(error);
  const auto event = find_event(handle, "cudaEventRecord");
  const auto stream = find_stream(stream_handle, "cudaEventRecord");
  if (!event || !stream) return failed(cudaErrorInvalidResourceHandle);
  if (flags > cudaEventRecordExternal) return failed(cudaErrorInvalidValue, "cudaEventRecordWithFlags: unknown flags");
  if (event->device != stream->device) {
    return failed(
        cudaErrorInvalidResourceHandle,
        fmt::format("cudaEventRecord: the event is of device {}, the stream of {}", event->device, stream->device));
  }
  return record(event, stream, flags == cudaEventRecordExternal);
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream) {
  return cudaEventRecordWithFlags(handle, stream, cudaEventRecordDefault);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream_handle, cudaEvent_t handle, unsigned flags) {
  if (const cudaError_t error = device_error(); error != cudaSuccess) return failed(error);
  const auto stream = find_stream(stream_handle, "cudaStreamWaitEvent");
  const auto event = find_event(handle, "cudaStreamWaitEvent");
  if (!event || !stream) return failed(cudaErrorInvalidResourceHandle);
  if (flags > cudaEventWaitExternal) return failed(cudaErrorInvalidValue, "cudaStreamWaitEvent: unknown flags");
  return wait(stream, event, flags == cudaEventWaitExternal);
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  cudaError_t error = cudaSuccess;
  const auto record = latest(handle, "cudaEventQuery", error);
  if (error != cudaSuccess) return failed(error);
  if (record && !record->is_done()) return failed(cudaErrorNotReady);
  return failed(device_error());
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  cudaError_t error = cudaSuccess;
  const auto record = latest(handle, "cudaEventSynchronize", error);
  if (error != cudaSuccess) return failed(error);
  if (record) record->wait();
  return failed(device_error());
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  if (ms == nullptr) return failed(cudaErrorInvalidValue, "cudaEventElapsedTime: no place for the result");
  std::shared_ptr<Record> records[2];
  for (int i = 0; i < 2; ++i) {
    const auto event = find_event(i == 0 ? start : end, "cudaEventElapsedTime");
    if (!event) return failed(cudaErrorInvalidResourceHandle);
    const std::lock_guard lock(runtime_mutex());
    if (event->capture) return failed(cudaErrorCapturedEvent, "cudaEventElapsedTime: recorded in a capture");
    records[i] = event->latest;
    if (!records[i] || (event->flags & cudaEventDisableTiming)) {
      return failed(cudaErrorInvalidResourceHandle,
                    "cudaEventElapsedTime: the event was never recorded, or was made without timing");
    }
  }
  if (!records[0]->is_done() || !records[1]->is_done()) return failed(cudaErrorNotReady);
  *ms = static_cast<float>(static_cast<double>(records[1]->time_ns - records[0]->time_ns) * 1e-6);
  return cudaSuccess;
}
